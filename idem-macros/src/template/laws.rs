//! What holds for every text that is read as a template; the fuzz target says the same of texts that no one thought of.

use std::ops::Range;

use super::{
    SEPARATORS, Scope, TEXT_LIMIT, Template,
    fault::{Fault, corrected},
};

/// Some of the words that the attribute takes for telling.
pub(super) fn tells_apart(word: &str) -> bool {
    matches!(word, "id" | "month")
}

/// Reads a text as the template of a function, and checks all that can be said of what comes of it.
pub(crate) fn check(source: &str) {
    let parameters = ["self", "user_id", "month", "order", "t", "type"].map(str::to_owned);
    for parameters in [&parameters[..], &[]] {
        let scope = Scope { function: "charge", parameters, singleton: false, tells_apart };
        let (template, faults) = read(source, &scope);
        for fault in &faults {
            check_shown(fault, source, &faults);
        }
        if faults.is_empty() {
            check_accepted(&template, source);
        } else if faults.iter().all(Fault::writes) {
            check_corrected(source, &faults, &scope);
        }
    }
}

/// The template and all its faults: the attribute without `singleton` reports the last one too.
fn read(source: &str, scope: &Scope<'_>) -> (Template, Vec<Fault>) {
    let (template, mut faults) = Template::parse(source, scope);
    if template.is_constant() && !source.is_empty() {
        faults.push(Template::constant_fault(source, scope));
    }
    (template, faults)
}

/// The underline is on whole characters, and below what it is about.
fn check_shown(fault: &Fault, source: &str, faults: &[Fault]) {
    for at in fault.places() {
        assert!(source.get(at.clone()).is_some(), "{source:?} has no {at:?}: {fault:?}");
    }
    let shown = fault.show(source, faults);
    assert!(shown.lines().all(|line| !line.contains(char::is_control)), "{source:?}: {shown:?}");
    let lines: Vec<_> = shown.lines().collect();
    if let Some(under) = lines.iter().rposition(|line| line.trim_start().starts_with('^')) {
        let width = |line: &str| line.chars().count();
        assert!(width(lines[under]) <= width(lines[under - 1]).max(1), "{source:?}: {shown}");
    }
}

/// What is accepted says nothing else than what was written, and keeps the rules.
fn check_accepted(template: &Template, source: &str) {
    let Template { texts, placeholders, broken, .. } = template;
    assert!(!broken && texts.len() == placeholders.len() + 1, "{source:?}: {template:?}");
    let mut done = 0;
    for (text, placeholder) in texts.iter().zip(placeholders) {
        let Range { start, end } = placeholder.at;
        assert_eq!(source[done..start], escaped(text), "{source:?}");
        let written: Vec<_> = source[start + 1..end - 1].split('.').collect();
        let names: Vec<_> = written.iter().map(|name| name.strip_prefix("r#").unwrap_or(name)).collect();
        assert_eq!((&source[start..=start], &source[end - 1..end]), ("<", ">"), "{source:?}");
        assert_eq!(names, placeholder.path, "{source:?}");
        done = end;
    }
    assert_eq!(source[done..], escaped(&texts[placeholders.len()]), "{source:?}");

    let forbidden = |c: char| matches!(c, '%' | '/') || c.is_whitespace() || c.is_control();
    assert!(!texts.iter().any(|text| text.contains(forbidden)), "{source:?}");
    assert!(texts.iter().map(String::len).sum::<usize>() <= TEXT_LIMIT, "{source:?}");
    assert!(!texts[0].is_empty(), "{source:?}");
    assert!(texts[1..placeholders.len()].iter().all(|text| text.contains(SEPARATORS)), "{source:?}");
}

fn escaped(text: &str) -> String {
    text.replace('<', "<<").replace('>', ">>")
}

/// Whoever writes what the messages say has no fault left, except that a template may turn out too long.
fn check_corrected(source: &str, faults: &[Fault], scope: &Scope<'_>) {
    let corrected = corrected(source, faults);
    let (template, left) = read(&corrected, scope);
    let long = template.texts.iter().map(String::len).sum::<usize>() > TEXT_LIMIT;
    assert!(left.len() == usize::from(long), "{source:?} → {corrected:?}: {left:?}\nof {faults:?}");
}
