use idem_runtime::KeyPart;

#[derive(KeyPart)]
#[key_part(crate = "idem_runtime")]
struct Month(u8);

fn main() {
    let _ = Month(1);
}
