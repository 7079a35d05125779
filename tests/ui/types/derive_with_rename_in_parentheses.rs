use idem_runtime::KeyPart;

#[derive(KeyPart)]
enum Plan {
    #[key_part(rename("basic"))]
    Basic,
}

fn main() {
    let _ = Plan::Basic;
}
