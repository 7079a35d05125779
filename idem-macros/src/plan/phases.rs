//! The phases of a job, found by their tokens: `phase!("name"`, wherever in the body they stand. What a loop repeats is
//! found at run time, and a function inside of the body has phases of its own.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::LitStr;

use crate::{
    args::Mode,
    errors::Errors,
    function::{Flavor, Function},
    phase::{Body, Phase},
    transaction::Transaction,
};

/// The phases that stand in a body, in their order. One that is faulty is the macro's own to tell of.
pub(super) struct Phases(Vec<Phase>);

impl Phases {
    pub(super) fn find(function: &Function) -> Self {
        let mut phases = Vec::new();
        collect(function.body.stream(), &mut phases);
        Self(phases)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn named(&self) -> impl Iterator<Item = (&LitStr, &Phase)> {
        self.0.iter().filter_map(|phase| Some((phase.name.as_ref()?, phase)))
    }

    /// A phase runs once for its name, so a second one of the same name would be answered with the first one's result.
    pub(super) fn check_names(&self, function: &Function, errors: &mut Errors) {
        let names: Vec<&LitStr> = self.named().map(|(name, _)| name).collect();
        for (at, name) in names.iter().enumerate() {
            let text = name.value();
            if names[..at].iter().any(|earlier| earlier.value() == text) {
                errors.at(
                    name.span(),
                    format!(
                        "a second phase named `{text}` in `{job}`: a phase runs once per key, so this one would get the first one's result\n\
                         give it a name of its own",
                        job = function.sig.ident
                    ),
                );
            }
        }
    }

    /// A phase stands under the claim of its job, in the job's transaction where there is one.
    pub(super) fn check_mode(
        &self,
        mode: Option<Mode>,
        transaction: Option<&Transaction>,
        function: &Function,
        errors: &mut Errors,
    ) {
        let job = &function.sig.ident;
        match mode {
            Some(Mode::RecordAfter) => {
                if let Some((name, _)) = self.named().next() {
                    errors.at(
                        name.span(),
                        format!(
                            "a phase in `{job}`, which is `record_after` and claims nothing that a phase could stand under\n\
                             write `mode = \"lock_first\", on_stale = \"retry\"` for the job: a repeat then goes on where it stopped"
                        ),
                    );
                }
            }
            Some(Mode::Transactional) => {
                let tx =
                    transaction.map_or_else(|| "tx".to_owned(), |transaction| transaction.ident.to_string());
                let apart = |phase: &Phase| phase.mode().is_some_and(|mode| mode != Mode::Transactional);
                for (name, _) in self.named().filter(|(_, phase)| apart(phase)) {
                    errors.at(
                        name.span(),
                        format!(
                            "`{job}` is `transactional`, and a phase of it joins its transaction: its rows and the phase are kept together or not at all\n\
                             write `mode = \"transactional\", tx = {tx}`"
                        ),
                    );
                }
            }
            Some(Mode::LockFirst) | None => {}
        }
    }

    /// A closure keeps the thread, of which an asynchronous job has none to give. The other way round rustc finds an
    /// `.await` where none can be.
    pub(super) fn check_bodies(&self, function: &Function, errors: &mut Errors) {
        if matches!(function.flavor, Flavor::Sync) {
            return;
        }
        for (_, phase) in self.named() {
            if let Some(Body::Sync { head, .. }) = &phase.body {
                errors.push(syn::Error::new_spanned(
                    head,
                    format!(
                        "a closure keeps its thread waiting for the store, and `{job}` is asynchronous\n\
                         write `async {{ … }}`",
                        job = function.sig.ident
                    ),
                ));
            }
        }
    }
}

fn collect(tokens: TokenStream, phases: &mut Vec<Phase>) {
    let mut before: [Option<TokenTree>; 2] = [None, None];
    let mut inside_function = false;
    for token in tokens {
        inside_function |= names_a_function(&before);
        if let TokenTree::Group(group) = &token {
            let is_body = group.delimiter() == Delimiter::Brace;
            if !inside_function {
                if calls_phase(&before) {
                    phases.push(read(group.stream()));
                }
                collect(group.stream(), phases);
            }
            inside_function &= !is_body;
        }
        let [_, last] = before;
        before = [last, Some(token)];
    }
}

fn read(tokens: TokenStream) -> Phase {
    let mut errors = Errors::default();
    let phase = Phase::parse(tokens, &mut errors);
    // The macro tells of them itself.
    let _ = errors.finish();
    phase
}

/// Whether the two tokens are `fn` and a name.
fn names_a_function(before: &[Option<TokenTree>; 2]) -> bool {
    matches!(before, [Some(TokenTree::Ident(word)), Some(TokenTree::Ident(_))] if word == "fn")
}

/// Whether the two tokens are `phase` and `!`.
fn calls_phase(before: &[Option<TokenTree>; 2]) -> bool {
    matches!(before, [Some(TokenTree::Ident(name)), Some(TokenTree::Punct(bang))]
        if name == "phase" && bang.as_char() == '!')
}
