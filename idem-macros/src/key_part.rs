//! `#[derive(KeyPart)]`: newtypes, structs and unit enums as parts of a key.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{
    Attribute, Data, DeriveInput, Fields, GenericParam, Generics, LitStr, Member, Path, Token, Type,
    TypeParamBound, Variant, WherePredicate, ext::IdentExt, meta::ParseNestedMeta, parse_quote,
    parse_quote_spanned, spanned::Spanned, token,
};

use crate::{
    errors::{Errors, list},
    expand::key_part,
    function::{mentions, ungrouped},
};

/// What the derive writes, once the checks have passed.
struct Part {
    name: Ident,
    generics: Generics,
    krate: Path,
    text: Text,
}

/// Where a value's text comes from.
enum Text {
    Display(Span),
    Fields(Vec<(Member, Type)>),
    Variants(Vec<(Ident, LitStr)>),
    /// There is none, and that is reported.
    Nothing,
}

pub(crate) fn derive(item: TokenStream) -> TokenStream {
    let input = match syn::parse2::<DeriveInput>(item) {
        Ok(input) => input,
        Err(error) => return error.to_compile_error(),
    };
    let mut errors = Errors::default();
    let part = Part::new(input, &mut errors);
    match errors.finish() {
        Ok(()) => part.expand(),
        Err(error) => {
            let error = error.to_compile_error();
            // It is a part all the same, or each key that it stands in would be reported as well.
            let part = Part { text: Text::Nothing, ..part }.expand();
            quote!(#error #part)
        }
    }
}

/// Where a `#[key_part(…)]` stands.
#[derive(Clone, Copy)]
enum Place {
    Type,
    Variant,
    /// A variant of an enum that writes its `Display`.
    DisplayedVariant,
    Field,
}

impl Place {
    /// What is known there, each word as it is written.
    fn words(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Type => &[("display", "display"), ("crate", "crate = path")],
            Self::Variant => &[("rename", "rename = \"…\"")],
            Self::DisplayedVariant | Self::Field => &[],
        }
    }

    fn unknown(self, word: &str) -> String {
        let known = list(self.words().iter().map(|(_, form)| *form));
        match self {
            Self::Type => format!("`#[key_part]` has no `{word}` on a type; it has {known}"),
            Self::Variant => format!("`#[key_part]` has no `{word}` on a variant; it has {known}"),
            Self::DisplayedVariant => {
                format!(
                    "`{word}` has no effect: the enum is written as its `Display` writes it\nremove it, or `display`"
                )
            }
            Self::Field => {
                format!("`#[key_part]` has no `{word}` on a field: every field is part of the key\nremove it")
            }
        }
    }
}

/// The words of the `#[key_part(…)]`s at one place.
#[derive(Default)]
struct Words {
    display: Option<Span>,
    rename: Option<LitStr>,
    krate: Option<Path>,
}

impl Words {
    fn read(attrs: &[Attribute], place: Place, errors: &mut Errors) -> Self {
        let mut words = Self::default();
        for attr in attrs.iter().filter(|attr| attr.path().is_ident("key_part")) {
            let read = attr.parse_nested_meta(|meta| {
                let word = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
                if !place.words().iter().any(|(known, _)| *known == word) {
                    return Err(meta.error(place.unknown(&word)));
                }
                let valued = meta.input.peek(Token![=]) || meta.input.peek(token::Paren);
                if word == "display" && valued {
                    return Err(meta.error("`display` stands alone: it takes no value"));
                }
                let again = match word.as_str() {
                    "display" => words.display.replace(meta.path.span()).is_some(),
                    "rename" => words.rename.replace(text_in(&meta)?).is_some(),
                    _ => words.krate.replace(path_in(&meta)?).is_some(),
                };
                if again {
                    return Err(meta.error(format!("`{word}` is given twice; keep one of them")));
                }
                Ok(())
            });
            errors.take(read);
        }
        words
    }
}

/// The text of `rename = "…"`.
fn text_in(meta: &ParseNestedMeta<'_>) -> syn::Result<LitStr> {
    if let Ok(value) = meta.value()
        && value.peek(LitStr)
    {
        return value.parse();
    }
    let fact = "the text of a variant is a string: write `rename = \"…\"`";
    // At its end the input has words of its own.
    Err(if meta.input.is_empty() { meta.error(fact) } else { meta.input.error(fact) })
}

/// The path of `crate = path`.
fn path_in(meta: &ParseNestedMeta<'_>) -> syn::Result<Path> {
    let path = meta.value().and_then(|value| value.call(Path::parse_mod_style));
    path.map_err(|_| meta.error("`crate` is the path of the runtime crate, such as `crate = crate::jobs`"))
}

impl Part {
    fn new(input: DeriveInput, errors: &mut Errors) -> Self {
        let DeriveInput { attrs, ident: name, generics, data, .. } = input;
        let words = Words::read(&attrs, Place::Type, errors);
        let krate = words.krate.unwrap_or_else(|| parse_quote!(::idem_runtime));
        let text = text(data, &name, &generics, words.display, errors);
        Self { name, generics, krate, text }
    }

    fn expand(&self) -> TokenStream {
        let Self { name, generics, krate, text } = self;
        let mut bounded = generics.clone();
        for bound in text.bounds(generics, krate) {
            bounded.make_where_clause().predicates.push(bound);
        }
        let (impl_generics, ty_generics, where_clause) = bounded.split_for_impl();
        let out = Ident::new("out", Span::mixed_site());
        let body = text.write(krate, generics, &out);
        quote! {
            #[automatically_derived]
            impl #impl_generics #krate::KeyPart for #name #ty_generics #where_clause {
                fn write(&self, #out: &mut #krate::KeyWriter) {
                    #body
                }
            }
        }
    }
}

fn text(data: Data, name: &Ident, generics: &Generics, display: Option<Span>, errors: &mut Errors) -> Text {
    let display = display.map(Text::Display);
    match data {
        Data::Union(data) => {
            let fact = "a union cannot be part of a key: which of its fields holds the value is not known\n\
                        implement `KeyPart` by hand, or use an enum";
            errors.at(data.union_token.span, fact);
            Text::Nothing
        }
        Data::Struct(data) => {
            check_fields(&data.fields, errors);
            if let Some(display) = display {
                return display;
            }
            check_phantoms(name, &data.fields, errors);
            check_constants(name, generics, &data.fields, errors);
            if data.fields.is_empty() {
                let fact = format!("`{name}` has no fields, so its values cannot tell one key from another");
                errors.at(name.span(), format!("{fact}\nwrite the text into the key itself"));
            }
            let members = data.fields.members();
            Text::Fields(members.zip(data.fields.iter().map(|field| field.ty.clone())).collect())
        }
        Data::Enum(data) => {
            if data.variants.is_empty() && display.is_none() {
                errors.at(
                    name.span(),
                    format!("`{name}` has no variants, so no value of it can be part of a key"),
                );
            }
            let variants: Vec<_> = data
                .variants
                .iter()
                .filter_map(|variant| text_of(variant, display.is_some(), errors))
                .collect();
            check_distinct(&variants, errors);
            display.unwrap_or(Text::Variants(variants))
        }
    }
}

fn check_fields(fields: &Fields, errors: &mut Errors) {
    for field in fields {
        Words::read(&field.attrs, Place::Field, errors);
    }
}

/// A marker of a type has no text, so a value for one type would be written as that for another.
fn check_phantoms(name: &Ident, fields: &Fields, errors: &mut Errors) {
    for field in fields {
        if let Type::Path(path) = ungrouped(&field.ty)
            && path.path.segments.last().is_some_and(|last| last.ident == "PhantomData")
        {
            errors.push(syn::Error::new_spanned(
                &field.ty,
                format!(
                    "`PhantomData` has no text, so values of `{name}` for different types could render one key\n\
                     write `#[key_part(display)]` on `{name}` with a `Display` that tells them apart, or implement `KeyPart` by hand"
                ),
            ));
        }
    }
}

/// Nor has a number that only the type holds.
fn check_constants(name: &Ident, generics: &Generics, fields: &Fields, errors: &mut Errors) {
    for param in generics.params.iter().filter(|param| matches!(param, GenericParam::Const(_))) {
        if let GenericParam::Const(constant) = param
            && !fields.iter().any(|field| mentions(field.ty.to_token_stream(), param))
        {
            let constant = &constant.ident;
            errors.at(
                constant.span(),
                format!(
                    "no field of `{name}` mentions `{constant}`, so values of `{name}` for different `{constant}` could render one key\n\
                     write `#[key_part(display)]` on `{name}` with a `Display` that tells them apart, or implement `KeyPart` by hand"
                ),
            );
        }
    }
}

/// A unit variant's text. One with data has none, unless the whole type writes its `Display`.
fn text_of(variant: &Variant, displayed: bool, errors: &mut Errors) -> Option<(Ident, LitStr)> {
    check_fields(&variant.fields, errors);
    let place = if displayed { Place::DisplayedVariant } else { Place::Variant };
    let words = Words::read(&variant.attrs, place, errors);
    if displayed {
        return None;
    }
    if !matches!(variant.fields, Fields::Unit) {
        let fact =
            format!("`{}` carries data, and only the variant's name could stand in a key", variant.ident);
        let remedy =
            "use unit variants, write `#[key_part(display)]` on the enum, or implement `KeyPart` by hand";
        errors.push(syn::Error::new_spanned(&variant.fields, format!("{fact}\n{remedy}")));
        return None;
    }
    let text = words.rename.unwrap_or_else(|| {
        let name = variant.ident.unraw();
        LitStr::new(&name.to_string(), name.span())
    });
    if text.value().is_empty() {
        errors.at(text.span(), "an empty value is refused when a key is rendered; give the variant a text");
    }
    Some((variant.ident.clone(), text))
}

fn check_distinct(variants: &[(Ident, LitStr)], errors: &mut Errors) {
    for (index, (variant, text)) in variants.iter().enumerate() {
        let earlier = variants[..index].iter().find(|(_, other)| other.value() == text.value());
        if let Some((other, _)) = earlier {
            let fact = format!("`{other}` and `{variant}` are both written `{}`", text.value());
            errors.at(text.span(), format!("{fact}\ntwo values would render one key: rename one of them"));
        }
    }
}

impl Text {
    /// A bound for each field whose type depends on a type parameter; the others are checked where they stand.
    fn bounds(&self, generics: &Generics, krate: &Path) -> Vec<syn::WherePredicate> {
        match self {
            Self::Display(_) if generics.type_params().next().is_none() => Vec::new(),
            Self::Display(span) => vec![parse_quote_spanned!(*span=> Self: ::core::fmt::Display)],
            Self::Variants(_) | Self::Nothing => Vec::new(),
            Self::Fields(fields) => {
                let dependent = |ty: &Type| {
                    let is_type = |param: &&syn::GenericParam| matches!(param, syn::GenericParam::Type(_));
                    generics.params.iter().filter(is_type).any(|param| mentions(ty.to_token_stream(), param))
                };
                let types = fields.iter().map(|(_, ty)| ty).filter(|ty| dependent(ty));
                types.map(|ty| parse_quote!(#ty: #krate::KeyPart)).collect()
            }
        }
    }

    fn write(&self, krate: &Path, generics: &Generics, out: &Ident) -> TokenStream {
        match self {
            Self::Display(span) => {
                let span = Span::call_site().located_at(*span);
                quote_spanned!(span=> #krate::KeyWriter::write_display(#out, self);)
            }
            Self::Variants(variants) => {
                let arms = variants.iter().map(|(variant, text)| quote!(Self::#variant => #text,));
                quote!(#krate::KeyWriter::write_str(#out, match self { #(#arms)* });)
            }
            Self::Fields(fields) => {
                let values = fields.iter().map(|(member, ty)| {
                    let span = Span::call_site().located_at(ty.span());
                    let by = if is_unsized(ty, generics) {
                        quote_spanned!(span=> &&)
                    } else {
                        quote_spanned!(span=> &)
                    };
                    key_part(&krate.to_token_stream(), &quote_spanned!(span=> #by self.#member))
                });
                if let [_] = &fields[..] {
                    return quote!(#krate::KeyPart::write(#(#values)*, #out););
                }
                quote!(#krate::KeyWriter::fields(#out, &[#(#values),*]);)
            }
            Self::Nothing => quote!(let _ = #out;),
        }
    }
}

/// Whether a field's type has no size, as the last field's may have none: then a reference to it stands for it.
fn is_unsized(ty: &Type, generics: &Generics) -> bool {
    let unbounded = |name: &Ident| {
        generics.type_params().any(|param| param.ident == *name && param.bounds.iter().any(is_maybe_sized))
            || generics.where_clause.iter().flat_map(|clause| &clause.predicates).any(|predicate| {
                matches!(predicate, WherePredicate::Type(predicate)
                    if is_ident(&predicate.bounded_ty, name) && predicate.bounds.iter().any(is_maybe_sized))
            })
    };
    match ungrouped(ty) {
        Type::Slice(_) | Type::TraitObject(_) => true,
        Type::Path(path) => path.path.get_ident().is_some_and(|name| name == "str" || unbounded(name)),
        _ => false,
    }
}

fn is_ident(ty: &Type, name: &Ident) -> bool {
    matches!(ungrouped(ty), Type::Path(path) if path.path.is_ident(name))
}

fn is_maybe_sized(bound: &TypeParamBound) -> bool {
    matches!(bound, TypeParamBound::Trait(bound) if bound.maybe.is_some())
}
