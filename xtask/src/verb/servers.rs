use std::{thread, time::Duration};

use anyhow::Result;

use crate::{
    fleet::{Fleet, Purpose},
    interrupt::Interrupt,
};

pub(crate) fn run(interrupt: &Interrupt) -> Result<()> {
    let fleet = Fleet::start(Purpose::Test, interrupt)?;
    for (server, missing) in fleet.missing() {
        eprintln!("{} is missing: {missing}", server.name);
    }
    for (variable, url) in fleet.variables() {
        println!("export {variable}='{url}'");
    }
    eprintln!("ctrl-c stops them");
    while !interrupt.raised() {
        thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}
