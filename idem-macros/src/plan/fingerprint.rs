//! The fingerprint against the function and the key.

use super::{Borrow, key::Key, shape::check_nameable};
use crate::{
    args::Args,
    errors::{Errors, did_you_mean, list},
    function::{Function, Parameter},
};

/// What the fingerprint covers: parameters and their fields, each once, and none that the key holds already.
pub(super) fn fingerprint(
    args: &Args,
    key: Option<&Key>,
    function: &Function,
    parameters: &[Parameter<'_>],
    errors: &mut Errors,
) -> Vec<Borrow> {
    let paths = args.fingerprint.as_ref().map_or(&[][..], |arg| &arg.value);
    let mut borrows = Vec::new();
    let mut seen: Vec<String> = Vec::new();
    for path in paths {
        let name = path.name();
        let root = name.split('.').next().unwrap_or_default();
        let Some(parameter) = parameters.iter().find(|p| p.name == root && !p.is_made_up()) else {
            let names = || parameters.iter().filter(|p| !p.is_made_up()).map(|p| p.name.as_str());
            errors.at(
                path.root.span(),
                format!(
                    "`{root}` is not a parameter of `{}`{}\nthe parameters are {}",
                    function.sig.ident,
                    did_you_mean(root, names(), ""),
                    list(names())
                ),
            );
            continue;
        };
        if key.is_some_and(|key| key.template.placeholders.iter().any(|p| p.name() == name)) {
            errors.at(
                path.root.span(),
                format!("`{name}` is in the key already: where keys are equal, it is equal too\nremove it from the fingerprint"),
            );
        } else if seen.contains(&name) {
            errors.at(path.root.span(), format!("`{name}` is in the fingerprint twice; keep one"));
        } else {
            check_nameable(parameter, function, errors);
        }
        seen.push(name);
        borrows.push(Borrow::new(&parameter.ident, path.fields.clone(), path.root.span()));
    }
    borrows
}
