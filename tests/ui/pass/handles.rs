//! `idem = …`: where the handle comes from.

use std::sync::{Arc, Mutex};

use idem_runtime::{Error, Idem, idempotent};

use super::{is_send, memory, once, once_sync, this_key};

#[derive(Clone)]
struct Context {
    idem: Idem,
}

impl Context {
    fn idem(&self) -> &Idem {
        &self.idem
    }

    #[idempotent(key = "handles:field:<id>", idem = self.idem)]
    async fn field(&self, id: u8) -> Result<String, Error> {
        let _ = id;
        Ok(this_key())
    }

    #[idempotent(key = "handles:method:<id>", idem = self.idem())]
    async fn method(&self, id: u8) -> Result<String, Error> {
        let _ = id;
        Ok(this_key())
    }

    #[idempotent(key = "handles:consumed:<id>", idem = self.idem)]
    async fn consumed(self, id: u8) -> Result<String, Error> {
        let _ = (self, id);
        Ok(this_key())
    }
}

#[idempotent(key = "handles:parameter:<id>", idem = context.idem)]
async fn parameter(context: Context, id: u8) -> Result<String, Error> {
    let _ = (context, id);
    Ok(this_key())
}

#[idempotent(key = "handles:reference:<id>", idem = idem)]
fn reference(idem: &Idem, id: u8) -> Result<String, Error> {
    let _ = (idem, id);
    Ok(this_key())
}

#[idempotent(key = "handles:shared:<id>", idem = Arc::clone(&idem))]
fn shared(idem: Arc<Idem>, id: u8) -> Result<String, Error> {
    let _ = (idem, id);
    Ok(this_key())
}

#[idempotent(key = "handles:block:<id>", idem = { let all = [memory()]; all[0] })]
fn block(id: u8) -> Result<String, Error> {
    let _ = id;
    Ok(this_key())
}

#[idempotent(key = "handles:chosen:<id>", idem = if id > 0 { &context.idem } else { memory() })]
fn chosen(context: &Context, id: u8) -> Result<String, Error> {
    let _ = (context, id);
    Ok(this_key())
}

#[idempotent(key = "handles:matched:<id>", idem = match &context { Some(context) => context.idem(), None => memory() })]
async fn matched(context: Option<Context>, id: u8) -> Result<String, Error> {
    let _ = (context, id);
    Ok(this_key())
}

#[idempotent(key = "handles:locked:<id>", idem = context.lock().expect("no poison").idem)]
async fn locked(context: &Mutex<Context>, id: u8) -> Result<String, Error> {
    let _ = (context.lock(), id);
    tokio::task::yield_now().await;
    Ok(this_key())
}

#[tokio::test]
async fn the_handle_comes_from_an_expression() {
    let context = Context { idem: memory().clone() };
    assert_eq!(once(async || context.field(1).await).await, "handles:field:1");
    assert_eq!(once(async || context.method(1).await).await, "handles:method:1");
    assert_eq!(once(async || context.clone().consumed(1).await).await, "handles:consumed:1");
    assert_eq!(once(async || parameter(context.clone(), 1).await).await, "handles:parameter:1");
    assert_eq!(once_sync(|| reference(&context.idem, 1)), "handles:reference:1");
    assert_eq!(once_sync(|| chosen(&context, 1)), "handles:chosen:1");
    assert_eq!(once(async || is_send(matched(None, 1)).await).await, "handles:matched:1");
    let locked_one = Mutex::new(context.clone());
    assert_eq!(once(async || is_send(locked(&locked_one, 1)).await).await, "handles:locked:1");
    let idem = Arc::new(memory().clone());
    assert_eq!(once_sync(|| shared(Arc::clone(&idem), 1)), "handles:shared:1");
    assert_eq!(once_sync(|| block(1)), "handles:block:1");
}
