//! The function under the attribute: its signature parsed, its body kept as tokens.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{
    AttrStyle, Attribute, FnArg, GenericArgument, GenericParam, Lifetime, Meta, Pat, Path, PathArguments,
    ReceiverKind, ReturnType, Signature, Token, Type, TypeParamBound, TypeTraitObject, Visibility,
    ext::IdentExt,
    parse::{ParseStream, Parser},
    parse_quote, token,
};

use crate::errors::Errors;

pub(crate) struct Function {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) vis: Visibility,
    pub(crate) sig: Signature,
    /// The body's braces and what is in them, without inner attributes.
    pub(crate) body: Group,
    /// The braces as the user wrote them.
    pub(crate) braces: Span,
    /// What a call gives in the end: the type that must be a `Result`.
    pub(crate) output: Type,
    pub(crate) flavor: Flavor,
}

/// How the function gives its output.
pub(crate) enum Flavor {
    Async,
    Sync,
    /// `fn` to `Pin<Box<dyn Future<Output = …>>>`, which is what `#[async_trait]` makes. The type is the boxed
    /// future's, its lifetime left to inference.
    Boxed(Box<Type>),
}

/// A parameter with a name of its own, or a name bound inside a parameter's pattern.
pub(crate) struct Parameter<'a> {
    /// Without `r#`.
    pub(crate) name: String,
    pub(crate) ident: Ident,
    pub(crate) kind: ParameterKind<'a>,
}

pub(crate) enum ParameterKind<'a> {
    Named,
    Receiver,
    Destructured(&'a Pat),
    /// One that a `#[cfg]` may remove.
    Conditional(&'a Attribute),
}

impl Parameter<'_> {
    /// The pattern around the name, or the name.
    pub(crate) fn pattern(&self) -> &dyn ToTokens {
        match &self.kind {
            ParameterKind::Destructured(pattern) => pattern,
            _ => &self.ident,
        }
    }

    /// A name that `#[async_trait]` made for a destructured parameter.
    pub(crate) fn is_made_up(&self) -> bool {
        self.name.strip_prefix("__arg").is_some_and(|rest| rest.parse::<u32>().is_ok())
    }
}

impl Function {
    /// Reads the item. `None` where it is no function with a body, and nothing more can be said of it.
    pub(crate) fn parse(item: TokenStream, errors: &mut Errors) -> Option<Self> {
        errors.take(Self::read.parse2(item))
    }

    fn read(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut attrs = input.call(Attribute::parse_outer)?;
        let vis: Visibility = input.parse()?;
        refuse_other_items(input)?;
        let sig: Signature = input.parse()?;
        let (body, braces) = body(input, &sig, &mut attrs)?;
        let (output, flavor) = match &sig.output {
            ReturnType::Type(_, ty) if sig.asyncness.is_some() => (Type::clone(ty), Flavor::Async),
            ReturnType::Type(_, ty) => match boxed_future(ty) {
                Some((output, future)) => (output, Flavor::Boxed(Box::new(future))),
                None => (Type::clone(ty), Flavor::Sync),
            },
            ReturnType::Default => (parse_quote!(()), Flavor::Sync),
        };
        Ok(Self { attrs, vis, sig, body, braces, output, flavor })
    }

    /// The attributes whose path ends in a name.
    pub(crate) fn attributes_named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Attribute> {
        let is_named =
            move |attr: &&Attribute| attr.path().segments.last().is_some_and(|last| last.ident == name);
        self.attrs.iter().filter(is_named)
    }

    pub(crate) fn returns_nothing(&self) -> bool {
        matches!(self.sig.output, ReturnType::Default)
    }

    /// The `Sync` of a boxed future that promises it.
    pub(crate) fn sync_bound(&self) -> Option<Path> {
        let Flavor::Boxed(future) = &self.flavor else { return None };
        let mut future = Type::clone(future);
        let bounds = &boxed_object(&mut future)?.bounds;
        bounds.iter().find_map(|bound| match bound {
            TypeParamBound::Trait(bound) if bound.path.segments.last()?.ident == "Sync" => {
                Some(bound.path.clone())
            }
            _ => None,
        })
    }

    /// Every name that the parameters bind, in order.
    pub(crate) fn parameters(&self) -> Vec<Parameter<'_>> {
        let mut parameters = Vec::new();
        for input in &self.sig.inputs {
            match input {
                FnArg::Receiver(receiver) => parameters.push(Parameter {
                    name: "self".to_owned(),
                    ident: receiver.self_token.into(),
                    kind: ParameterKind::Receiver,
                }),
                FnArg::Typed(typed) => {
                    let cfg = typed.attrs.iter().find(|attr| attr.path().is_ident("cfg"));
                    bind(&typed.pat, &mut |ident, whole| {
                        let kind = match cfg {
                            Some(cfg) => ParameterKind::Conditional(cfg),
                            None if whole => ParameterKind::Named,
                            None => ParameterKind::Destructured(&typed.pat),
                        };
                        parameters.push(Parameter {
                            name: ident.unraw().to_string(),
                            ident: ident.clone(),
                            kind,
                        });
                    });
                }
            }
        }
        parameters
    }

    /// The types of the parameters, the receiver's included where it is written out.
    pub(crate) fn parameter_types(&self) -> impl Iterator<Item = &Type> {
        self.sig.inputs.iter().filter_map(|input| match input {
            FnArg::Typed(typed) => Some(&*typed.ty),
            FnArg::Receiver(receiver) => match &receiver.kind {
                ReceiverKind::Typed(_, ty) => Some(&**ty),
                _ => None,
            },
        })
    }

    /// Whether `#[async_trait]` was here before.
    pub(crate) fn is_async_trait(&self) -> bool {
        let lifetimes = self.sig.generics.params.iter();
        lifetimes
            .filter_map(|param| if let GenericParam::Lifetime(param) = param { Some(param) } else { None })
            .any(|param| param.lifetime.ident == "async_trait")
    }

    pub(crate) fn has_docs(&self) -> bool {
        self.attrs.iter().any(|attr| attr.path().is_ident("doc") && matches!(attr.meta, Meta::NameValue(_)))
    }
}

/// What the attribute cannot stand on has a message of its own.
fn refuse_other_items(input: ParseStream<'_>) -> syn::Result<()> {
    let function = [
        input.peek2(Token![fn]),
        input.peek2(Token![async]),
        input.peek2(Token![unsafe]),
        input.peek2(Token![extern]),
    ];
    let constant = input.peek(Token![const]) && !function.contains(&true);
    let place = if input.peek(Token![impl]) {
        "not on an `impl` block: put it on the methods inside"
    } else if input.peek(Token![trait]) {
        "not on a trait: put it on the methods that have a body, and on those of the implementations"
    } else if input.peek(Token![mod]) {
        "not on a module: put it on the functions inside"
    } else if input.peek(Token![struct]) || input.peek(Token![enum]) || input.peek(Token![type]) {
        "not on a type: for a type whose values stand in keys write `#[derive(KeyPart)]`"
    } else if constant || is_no_function(input) {
        "not on another item"
    } else {
        return Ok(());
    };
    Err(input.error(format!("`#[idempotent]` goes on a function, {place}")))
}

/// Whether what stands there begins no function; what begins one and goes wrong later has words of its own.
fn is_no_function(input: ParseStream<'_>) -> bool {
    let ahead = input.fork();
    let foreign = ahead.peek(Token![extern]) && {
        let abi = ahead.parse::<Option<syn::Abi>>();
        abi.is_err() || ahead.peek(token::Brace) || ahead.peek(Token![crate])
    };
    let begins = [
        input.peek(Token![fn]),
        input.peek(Token![async]),
        input.peek(Token![unsafe]),
        input.peek(Token![const]),
        input.peek(Token![extern]),
    ];
    foreign || !(input.is_empty() || begins.contains(&true))
}

/// The body's group. Its inner attributes become outer ones of the function, and the braces lose the user's
/// context, because a body of one expression would look like needless braces.
fn body(input: ParseStream<'_>, sig: &Signature, attrs: &mut Vec<Attribute>) -> syn::Result<(Group, Span)> {
    let rest: TokenStream = input.parse()?;
    let mut tokens = rest.into_iter();
    let Some(TokenTree::Group(mut group)) = tokens.next() else {
        let fact = format!("`{}` has no body to run", sig.ident);
        let remedy = "put the attribute on each implementation, where the body is";
        return Err(syn::Error::new(sig.ident.span(), format!("{fact}\n{remedy}")));
    };
    while group.delimiter() == Delimiter::None {
        match group.stream().into_iter().next() {
            Some(TokenTree::Group(inner)) => group = inner,
            _ => break,
        }
    }
    let split =
        |input: ParseStream<'_>| Ok((input.call(Attribute::parse_inner)?, input.parse::<TokenStream>()?));
    let (inner, rest) = split.parse2(group.stream())?;
    attrs.extend(inner.into_iter().map(|attr| Attribute { style: AttrStyle::Outer, ..attr }));
    let mut body = Group::new(Delimiter::Brace, rest);
    body.set_span(group.span().resolved_at(Span::call_site()));
    Ok((body, group.span()))
}

/// The output of `Pin<Box<dyn Future<Output = …> + …>>`, and that type with the object's lifetime left open:
/// kept, a named lifetime would outlive what a body closure may borrow.
fn boxed_future(ty: &Type) -> Option<(Type, Type)> {
    let mut open = ty.clone();
    let object = boxed_object(&mut open)?;
    let output = object.bounds.iter().find_map(|bound| match bound {
        TypeParamBound::Trait(bound) => future_output(&bound.path).cloned(),
        _ => None,
    })?;
    for bound in &mut object.bounds {
        if let TypeParamBound::Lifetime(lifetime) = bound {
            *lifetime = Lifetime::new("'_", lifetime.span());
        }
    }
    Some((output, open))
}

/// The trait object in `Pin<Box<dyn …>>`.
fn boxed_object(ty: &mut Type) -> Option<&mut TypeTraitObject> {
    match ungroup(argument(argument(ty, "Pin")?, "Box")?) {
        Type::TraitObject(object) => Some(object),
        _ => None,
    }
}

fn future_output(path: &Path) -> Option<&Type> {
    let future = path.segments.last().filter(|segment| segment.ident == "Future")?;
    let PathArguments::AngleBracketed(arguments) = &future.arguments else { return None };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::AssocType(assoc) if assoc.ident == "Output" => Some(&assoc.ty),
        _ => None,
    })
}

/// The first type argument of a path that ends in `name`.
fn argument<'a>(ty: &'a mut Type, name: &str) -> Option<&'a mut Type> {
    let Type::Path(path) = ungroup(ty) else { return None };
    let last = path.path.segments.last_mut().filter(|segment| segment.ident == name)?;
    let PathArguments::AngleBracketed(arguments) = &mut last.arguments else { return None };
    match arguments.args.first_mut()? {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    }
}

/// The type inside the invisible groups that a `macro_rules!` puts around its fragments.
fn ungroup(mut ty: &mut Type) -> &mut Type {
    loop {
        ty = match ty {
            Type::Group(group) => &mut group.elem,
            Type::Paren(paren) => &mut paren.elem,
            other => return other,
        };
    }
}

/// The same, to look at.
pub(crate) fn ungrouped(mut ty: &Type) -> &Type {
    loop {
        ty = match ty {
            Type::Group(group) => &group.elem,
            Type::Paren(paren) => &paren.elem,
            other => return other,
        };
    }
}

/// A reference or a lifetime in the value of `Result<T, …>`, or of an alias with `T` as its first argument. That of a
/// `Cow` is none: it is read back as an owned one.
pub(crate) fn borrowed_value(output: &Type) -> Option<Span> {
    let mut output = output.clone();
    let Type::Path(path) = ungroup(&mut output) else { return None };
    let PathArguments::AngleBracketed(arguments) = &path.path.segments.last()?.arguments else { return None };
    let GenericArgument::Type(value) = arguments.args.first()? else { return None };
    find(
        without_cows(value.to_token_stream()),
        &|token, _| matches!(token, TokenTree::Punct(punct) if matches!(punct.as_char(), '&' | '\'')),
    )
}

/// The tokens without the lifetimes of `Cow<'a, …>`.
fn without_cows(tokens: TokenStream) -> TokenStream {
    let mut left: Vec<TokenTree> = Vec::new();
    let is_lifetime_of_a_cow = |left: &[TokenTree]| {
        matches!(left, [.., TokenTree::Ident(cow), TokenTree::Punct(angle), TokenTree::Punct(tick)]
            if cow == "Cow" && angle.as_char() == '<' && tick.as_char() == '\'')
    };
    for token in tokens {
        if is_lifetime_of_a_cow(&left) {
            left.pop();
            continue;
        }
        left.push(match token {
            TokenTree::Group(group) => {
                let mut inside = Group::new(group.delimiter(), without_cows(group.stream()));
                inside.set_span(group.span());
                inside.into()
            }
            token => token,
        });
    }
    left.into_iter().collect()
}

pub(crate) fn find_impl(ty: &Type) -> Option<Span> {
    find(ty.to_token_stream(), &|token, _| matches!(token, TokenTree::Ident(ident) if ident == "impl"))
}

/// Whether the tokens mention a generic parameter. A path segment of its name counts, which does no harm.
pub(crate) fn mentions(tokens: TokenStream, param: &GenericParam) -> bool {
    let (name, lifetime) = match param {
        GenericParam::Type(param) => (&param.ident, false),
        GenericParam::Const(param) => (&param.ident, false),
        GenericParam::Lifetime(param) => (&param.lifetime.ident, true),
    };
    find(tokens, &|token, ticked| {
        ticked == lifetime && matches!(token, TokenTree::Ident(ident) if ident == name)
    })
    .is_some()
}

/// The first token that the test accepts; it is told whether the token stands behind a `'`.
fn find(tokens: TokenStream, test: &dyn Fn(&TokenTree, bool) -> bool) -> Option<Span> {
    let mut ticked = false;
    for token in tokens {
        if test(&token, ticked) {
            return Some(token.span());
        }
        if let TokenTree::Group(group) = &token
            && let Some(span) = find(group.stream(), test)
        {
            return Some(span);
        }
        ticked = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == '\'');
    }
    None
}

/// Calls `bound` for each name of a pattern; its flag says that the name is the whole parameter.
fn bind<'a>(pat: &'a Pat, bound: &mut dyn FnMut(&'a Ident, bool)) {
    if let Pat::Ident(name) = pat {
        bound(&name.ident, true);
        if let Some((_, inner)) = &name.subpat {
            inside(inner, bound);
        }
        return;
    }
    inside(pat, bound);
}

fn inside<'a>(pat: &'a Pat, bound: &mut dyn FnMut(&'a Ident, bool)) {
    match pat {
        Pat::Ident(name) => {
            bound(&name.ident, false);
            if let Some((_, inner)) = &name.subpat {
                inside(inner, bound);
            }
        }
        Pat::Paren(pat) => inside(&pat.pat, bound),
        Pat::Reference(pat) => inside(&pat.pat, bound),
        Pat::Slice(pat) => pat.elems.iter().for_each(|pat| inside(pat, bound)),
        Pat::Struct(pat) => pat.fields.iter().for_each(|field| inside(&field.pat, bound)),
        Pat::Tuple(pat) => pat.elems.iter().for_each(|pat| inside(pat, bound)),
        Pat::TupleStruct(pat) => pat.elems.iter().for_each(|pat| inside(pat, bound)),
        _ => {}
    }
}
