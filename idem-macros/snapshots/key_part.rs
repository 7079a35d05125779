struct Line<T, const N: usize> {
    first: Vec<T>,
    second: [u8; N],
}

// expands to

#[automatically_derived]
impl<T, const N: usize> ::idem_runtime::KeyPart for Line<T, N>
where
    Vec<T>: ::idem_runtime::KeyPart,
{
    fn write(&self, out: &mut ::idem_runtime::KeyWriter) {
        ::idem_runtime::KeyWriter::fields(
            out,
            &[
                match &self.first {
                    __idem_part => ::idem_runtime::__private::Part(__idem_part).idem_of(__idem_part),
                },
                match &self.second {
                    __idem_part => ::idem_runtime::__private::Part(__idem_part).idem_of(__idem_part),
                },
            ],
        );
    }
}
