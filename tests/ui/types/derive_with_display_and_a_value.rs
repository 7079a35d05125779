use idem_runtime::KeyPart;

#[derive(KeyPart)]
#[key_part(display = true)]
struct Month(u8);

fn main() {
    let _ = Month(1);
}
