use idem_runtime::KeyPart;

#[derive(KeyPart)]
struct Shard<const N: usize> {
    id: u64,
}

#[derive(KeyPart)]
struct Digits<const N: usize>(#[allow(dead_code)] Text<N>);

#[derive(KeyPart)]
#[key_part(display)]
struct Text<const N: usize>([char; N]);

impl<const N: usize> std::fmt::Display for Text<N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|c| write!(f, "{c}"))
    }
}

fn main() {
    let _ = Shard::<1> { id: 1 };
    let _ = Digits(Text(['1']));
}
