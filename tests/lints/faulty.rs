//! Faults that lints find, in jobs: the same ones, and at the same places, as in plain functions. The attribute stands
//! on lines of its own, so that its absence moves nothing.

#![warn(unused, missing_docs, unused_qualifications, clippy::all, clippy::pedantic, clippy::nursery)]
#![warn(clippy::unwrap_used, clippy::todo, clippy::shadow_unrelated, clippy::str_to_string)]
#![allow(clippy::missing_errors_doc)]

use idem_runtime::Error;

#[idem_runtime::idempotent(key = "faulty:unused_argument:<id>")]
pub async fn unused_argument(id: u64, unused: u64) -> Result<u64, Error> {
    later().await;
    Ok(id)
}

#[idem_runtime::idempotent(key = "faulty:unused_argument_sync:<id>")]
pub fn unused_argument_sync(id: u64, unused: String, (left, right): (u64, u64)) -> Result<u64, Error> {
    Ok(id + left + later_sync())
}

#[idem_runtime::idempotent(key = "faulty:unused_mut:<id>")]
pub async fn unused_mut(mut id: u64, mut list: Vec<u64>) -> Result<usize, Error> {
    let mut more = id;
    later().await;
    Ok(list.len() + usize::from(more > 1))
}

#[idem_runtime::idempotent(key = "faulty:unused_mut_sync:<id>")]
pub fn unused_mut_sync(mut id: u64) -> Result<u64, Error> {
    let mut more = id;
    Ok(more + later_sync())
}

#[idem_runtime::idempotent(key = "faulty:dead:<id>")]
pub async fn dead(id: u64) -> Result<u64, Error> {
    later().await;
    return Ok(id);
    later().await;
}

#[idem_runtime::idempotent(key = "faulty:dead_sync:<id>")]
pub fn dead_sync(id: u64) -> Result<u64, Error> {
    if id > 1 {
        return Ok(later_sync());
    } else {
        return Ok(id);
    }
    println!("never");
}

#[idem_runtime::idempotent(key = "faulty:needless_return:<id>")]
pub async fn needless_return(id: u64) -> Result<u64, Error> {
    later().await;
    return Ok(id);
}

#[idem_runtime::idempotent(key = "faulty:needless_return_sync:<id>")]
pub fn needless_return_sync(id: u64) -> Result<u64, Error> {
    let more = later_sync();
    return Ok(id + more);
}

#[idem_runtime::idempotent(key = "faulty:unused_must_use:<id>")]
pub async fn unused_must_use(id: u64) -> Result<u64, Error> {
    id.checked_add(1);
    later();
    later().await;
    unused_variable(id).await;
    Ok(id)
}

#[idem_runtime::idempotent(key = "faulty:unused_must_use_sync:<id>")]
pub fn unused_must_use_sync(id: u64) -> Result<u64, Error> {
    id.checked_add(1);
    unused_variable_sync(id);
    Ok(id + later_sync())
}

#[idem_runtime::idempotent(key = "faulty:unused_variable:<id>")]
pub async fn unused_variable(id: u64) -> Result<u64, Error> {
    let unused = 1;
    let assigned;
    assigned = 2;
    later().await;
    Ok(id)
}

#[idem_runtime::idempotent(key = "faulty:unused_variable_sync:<id>")]
pub fn unused_variable_sync(id: u64) -> Result<u64, Error> {
    let unused = 1;
    let mut set = 2;
    set = 3;
    Ok(id + later_sync())
}

#[idem_runtime::idempotent(key = "faulty:style:<id>")]
pub async fn style(id: u64, name: Option<String>) -> Result<u64, Error> {
    later().await;
    let length = name.clone().unwrap().len();
    let text = "x".to_string();
    if text.len() == 0 {
        if id == 1 {
            todo!();
        }
    }
    let sum = id + (length as u64);
    sum.checked_add(1).unwrap();
    let sum = match Some(length) {
        Some(length) => length as u64,
        _ => 0,
    };
    Ok(sum)
}

#[idem_runtime::idempotent(key = "faulty:style_sync:<id>")]
pub fn style_sync(id: u64, name: Option<String>) -> Result<u64, Error> {
    let length = name.clone().unwrap().len();
    let mut sum = id + (length as u64) + later_sync();
    for at in 0..3 {
        sum = sum + at;
    }
    let result = Ok(sum);
    result
}

#[idem_runtime::idempotent(key = "faulty:arguments:<name>")]
pub async fn arguments(name: &String, list: &Vec<u64>, text: &mut String) -> Result<usize, Error> {
    later().await;
    Ok(name.len() + list.len() + text.len())
}

#[idem_runtime::idempotent(key = "faulty:arguments_sync:<name>")]
pub fn arguments_sync(name: &String, list: &Vec<u64>, text: String, boxed: Box<u64>) -> Result<usize, Error> {
    Ok(name.len() + list.len() + text.len() + usize::from(*boxed > later_sync()))
}

/// Has methods.
#[derive(Debug)]
pub struct Service {
    count: u64,
}

impl Service {
    #[idem_runtime::idempotent(key = "faulty:method:<id>")]
    pub async fn method(&self, id: u64, unused: u64) -> Result<u64, Error> {
        later().await;
        let unused = self.count;
        return Ok(id);
    }

    #[idem_runtime::idempotent(key = "faulty:method_sync:<id>")]
    pub fn method_sync(&mut self, mut id: u64) -> Result<u64, Error> {
        self.count.checked_add(later_sync());
        return Ok(self.count + id);
    }

    #[idem_runtime::idempotent(key = "faulty:never_called:<id>")]
    async fn never_called(self, id: u64) -> Result<u64, Error> {
        later().await;
        Ok(id)
    }
}

#[idem_runtime::idempotent(key = "faulty:never_called_either:<id>")]
fn never_called_either(id: u64) -> Result<u64, Error> {
    Ok(id + later_sync())
}

async fn later() {
    std::future::ready(()).await;
}

fn later_sync() -> u64 {
    std::process::id().into()
}
