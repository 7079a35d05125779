//! One function: what it takes and gives, what its attribute says.

use super::{Dice, step};

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Async,
    Sync,
    AsyncMethod,
    SyncMethod,
    Transactional,
}

#[derive(Clone, Copy, PartialEq)]
enum Fails {
    Anyhow,
    Own,
}

/// What a function returns in its `Ok`.
#[derive(Clone, Copy)]
enum Returned {
    /// A struct of its own, with so many fields.
    Own(usize),
    Summary,
    Number,
    Text,
    Unit,
}

impl Returned {
    fn name(self, function: &str) -> String {
        match self {
            Self::Own(_) => format!("Receipt{}", function.rsplit('_').next().unwrap_or_default()),
            Self::Summary => "Summary".to_owned(),
            Self::Number => "u64".to_owned(),
            Self::Text => "String".to_owned(),
            Self::Unit => "()".to_owned(),
        }
    }

    const FIELDS: [(&str, &str, &str); 4] = [
        ("total", "u64", "total"),
        ("notes", "Vec<String>", "notes"),
        ("account", "AccountId", "AccountId(total)"),
        ("late", "Option<bool>", "(total > 3).then_some(true)"),
    ];

    fn declaration(self, function: &str) -> String {
        let Self::Own(fields) = self else { return String::new() };
        let name = self.name(function);
        let fields = Self::FIELDS[..fields].iter().map(|(name, of, _)| format!("    pub {name}: {of},"));
        let fields = fields.collect::<Vec<_>>().join("\n");
        format!("#[derive(Debug, Clone, Serialize, Deserialize)]\npub struct {name} {{\n{fields}\n}}\n")
    }

    fn value(self, function: &str) -> String {
        match self {
            Self::Own(fields) => {
                let fields: Vec<String> = Self::FIELDS[..fields]
                    .iter()
                    .map(|(name, _, value)| format!("{name}: {value}"))
                    .collect();
                format!("Ok({} {{ {} }})", self.name(function), fields.join(", "))
            }
            Self::Summary => "Ok(Summary { total, notes })".to_owned(),
            Self::Number => "Ok(total + notes.len() as u64)".to_owned(),
            Self::Text => "Ok(notes.join(\"; \"))".to_owned(),
            Self::Unit => "if notes.is_empty() && total == 0 {\n    return Ok(());\n}\nOk(())".to_owned(),
        }
    }
}

/// A parameter: its type, how a template names it, a number made of it, and an argument for it.
#[derive(Clone, Copy)]
struct Parameter {
    name: &'static str,
    of: &'static str,
    key: &'static str,
    number: &'static str,
    argument: &'static str,
}

const fn parameter(
    name: &'static str,
    of: &'static str,
    key: &'static str,
    number: &'static str,
    argument: &'static str,
) -> Parameter {
    Parameter { name, of, key, number, argument }
}

/// What can stand in a key.
const KEYED: [Parameter; 8] = [
    parameter("account", "AccountId", "account", "account.0", "AccountId(7)"),
    parameter("request", "RequestId", "request", "request.0 as u64", "RequestId(7)"),
    parameter("user_id", "u64", "user_id", "user_id", "7"),
    parameter("customer", "&str", "customer", "customer.len() as u64", "\"c-17\""),
    parameter("region", "String", "region", "region.len() as u64", "String::from(\"north\")"),
    parameter("period", "Period", "period", "u64::from(period.year)", "Period::default()"),
    parameter("order", "&Order", "order.id", "order.cents", "&order"),
    parameter("shelf", "i32", "shelf", "u64::from(shelf.unsigned_abs())", "-3"),
];

/// What a fingerprint covers.
const CENTS: Parameter = parameter("cents", "u64", "cents", "cents", "1900");

pub(super) struct Function {
    name: String,
    kind: Kind,
    fails: Fails,
    keyed: Vec<Parameter>,
    cents: bool,
    result: Returned,
    settings: Vec<&'static str>,
    steps: Vec<usize>,
}

impl Function {
    pub(super) fn draw(number: usize, dice: &mut Dice) -> Self {
        const VERBS: [&str; 10] = [
            "charge", "refund", "notify", "export", "import", "close", "ship", "invoice", "remind", "settle",
        ];
        let kind = match dice.below(20) {
            0..8 => Kind::Async,
            8..11 => Kind::Sync,
            11..16 => Kind::AsyncMethod,
            16..19 => Kind::SyncMethod,
            _ => Kind::Transactional,
        };
        let mut keyed: Vec<Parameter> = Vec::new();
        for _ in 0..=dice.below(3) {
            let drawn = KEYED[dice.below(KEYED.len())];
            if keyed.iter().all(|known| known.name != drawn.name) {
                keyed.push(drawn);
            }
        }
        let cents = keyed.len() < 2 || dice.below(2) == 0;
        let result = match dice.below(8) {
            0..3 => Returned::Own(1 + dice.below(4)),
            3..5 => Returned::Summary,
            5 => Returned::Number,
            6 => Returned::Text,
            _ => Returned::Unit,
        };
        Self {
            name: format!("{}_{number}", VERBS[dice.below(VERBS.len())]),
            kind,
            fails: if dice.below(2) == 0 { Fails::Anyhow } else { Fails::Own },
            keyed,
            cents,
            result,
            settings: settings(kind, dice),
            steps: step::draw(dice),
        }
    }

    pub(super) fn is_method(&self) -> bool {
        matches!(self.kind, Kind::AsyncMethod | Kind::SyncMethod)
    }

    fn is_async(&self) -> bool {
        !matches!(self.kind, Kind::Sync | Kind::SyncMethod)
    }

    /// The struct that it returns, where that is its own.
    pub(super) fn receipt(&self) -> Option<String> {
        matches!(self.result, Returned::Own(_)).then(|| self.result.declaration(&self.name))
    }

    pub(super) fn attribute(&self) -> String {
        let parts: Vec<String> = self.keyed.iter().map(|part| format!("<{}>", part.key)).collect();
        let tenant = if self.is_method() { "<self.tenant>:" } else { "" };
        let mut arguments =
            vec![format!("key = \"{}:{tenant}{}\"", self.name.replace('_', "-"), parts.join(":"))];
        if self.cents {
            arguments.push("fingerprint = (cents)".to_owned());
        }
        if self.is_method() {
            arguments.push("idem = self.idem".to_owned());
        }
        arguments.extend(self.settings.iter().map(|&setting| setting.to_owned()));
        format!("#[idempotent({})]", arguments.join(", "))
    }

    pub(super) fn signature(&self) -> String {
        let mut parameters: Vec<String> = Vec::new();
        match self.kind {
            Kind::AsyncMethod | Kind::SyncMethod => parameters.push("&self".to_owned()),
            Kind::Async | Kind::Sync => {}
            Kind::Transactional => {
                parameters.push("tx: &mut sqlx::Transaction<'_, sqlx::Sqlite>".to_owned());
            }
        }
        let cents = self.cents.then_some(&CENTS);
        parameters.extend(self.keyed.iter().chain(cents).map(|part| format!("{}: {}", part.name, part.of)));
        if !self.is_method() {
            parameters.push("client: &Client".to_owned());
        }
        let result = self.result.name(&self.name);
        let result = match self.fails {
            Fails::Anyhow => format!("anyhow::Result<{result}>"),
            Fails::Own => format!("Result<{result}, Error>"),
        };
        let keyword = if self.is_async() { "async fn" } else { "fn" };
        format!("pub {keyword} {}({}) -> {result}", self.name, parameters.join(", "))
    }

    pub(super) fn body(&self) -> String {
        let numbers: Vec<&str> = self.keyed.iter().map(|part| part.number).collect();
        let cents = if self.cents { " + cents" } else { "" };
        let client = if self.is_method() { "self.client" } else { "client" };
        let limit = if self.is_method() { "self.limit" } else { "1_000_000" };
        let too_much = match self.fails {
            Fails::Anyhow => "anyhow::bail!(\"{total} is too much\")",
            Fails::Own => "return Err(Error::TooMuch(total))",
        };
        let mut body = vec![
            format!("let mut total: u64 = {}{cents};", numbers.join(" + ")),
            "let mut notes: Vec<String> = Vec::new();".to_owned(),
            format!("total += {client}.fee(total);"),
        ];
        if self.kind == Kind::Transactional {
            body.push(step::UPDATE.to_owned());
        }
        for (at, &step) in self.steps.iter().enumerate() {
            let text = if self.is_async() { step::ASYNC[step] } else { step::SYNC[step] };
            let text = text.replace("CLIENT", client).replace("LIMIT", limit).replace("TOO_MUCH", too_much);
            body.push(text.replace("_N", &format!("_{at}")).trim().to_owned());
        }
        body.push(format!("notes.push({client}.line(total));"));
        body.push(self.result.value(&self.name));
        body.join("\n").replace('\n', "\n    ")
    }

    pub(super) fn call(&self) -> String {
        let mut arguments: Vec<&str> = Vec::new();
        if self.kind == Kind::Transactional {
            arguments.push("tx");
        }
        let cents = self.cents.then_some(&CENTS);
        arguments.extend(self.keyed.iter().chain(cents).map(|part| part.argument));
        if !self.is_method() {
            arguments.push("client");
        }
        let receiver = if self.is_method() { "service." } else { "" };
        let wait = if self.is_async() { ".await" } else { "" };
        let name = &self.name;
        format!("    println!(\"{{:?}}\", {receiver}{name}({}){wait}.is_ok());\n", arguments.join(", "))
    }
}

/// What stands in the attribute beside key, fingerprint and `idem`.
fn settings(kind: Kind, dice: &mut Dice) -> Vec<&'static str> {
    if kind == Kind::Transactional {
        return vec!["mode = \"transactional\""];
    }
    let mut settings = Vec::new();
    if dice.below(4) == 0 {
        settings.push("mode = \"record_after\"");
    } else {
        if dice.below(2) == 0 {
            settings.push("stale_after = \"90s\"");
        }
        match dice.below(6) {
            0 => settings.extend(["on_stale = \"retry\"", "max_takeovers = 3"]),
            1 => settings.push("on_stale = \"retry\""),
            2 => settings.push("mode = \"lock_first\""),
            _ => {}
        }
        match dice.below(8) {
            0 => settings.push("on_error = \"release\""),
            1 => settings.push("on_busy = \"wait\""),
            _ => {}
        }
    }
    match dice.below(6) {
        0 => settings.push("ttl = \"30d\""),
        1 => settings.push("ttl = \"7d\""),
        2 => settings.push("replay = false"),
        _ => {}
    }
    settings
}
