//! What the bodies of functions are made of.

use super::Dice;

/// What a transactional job writes.
pub(super) const UPDATE: &str = r#"let statement = "UPDATE accounts SET cents = cents - ?";
sqlx::query(statement).bind(total as i64).execute(&mut **tx).await?;"#;

/// Which steps a body takes, none twice.
pub(super) fn draw(dice: &mut Dice) -> Vec<usize> {
    let mut steps = Vec::new();
    for _ in 0..2 + dice.below(4) {
        let step = dice.below(ASYNC.len());
        if !steps.contains(&step) {
            steps.push(step);
        }
    }
    steps
}

/// What bodies are made of: each takes `total` and `notes` a step further.
pub(super) const ASYNC: [&str; 9] = [
    "
let answer_N = CLIENT.get(&format!(\"/accounts/{total}\")).await?;
total += answer_N.len() as u64;
notes.push(answer_N);
",
    "
for page in 0..3 {
    for &item in CLIENT.page(page)? {
        if item % 2 == 0 {
            total += CLIENT.post(\"/items\", item).await?;
        }
    }
}
",
    "
let text_N = CLIENT.get(\"/rate\").await?;
let rate_N: u64 = text_N.trim().parse()?;
total = total.saturating_mul(rate_N) / 100;
",
    "
if total > LIMIT {
    TOO_MUCH;
}
",
    "
let mut tries_N = 0;
let charged_N = loop {
    match CLIENT.post(\"/charges\", total).await {
        Ok(charged) => break charged,
        Err(error) if tries_N < 3 => {
            notes.push(error.to_string());
            tries_N += 1;
            tokio::time::sleep(Duration::from_millis(10 * tries_N)).await;
        }
        Err(error) => return Err(error.into()),
    }
};
total += charged_N;
",
    COUNTED,
    CHAIN,
    MATCHED,
    "
let (rate_N, page_N) = tokio::join!(CLIENT.get(\"/rate\"), CLIENT.post(\"/pages\", total));
notes.push(format!(\"{} and {}\", rate_N?, page_N?));
",
];

pub(super) const SYNC: [&str; 9] = [
    "
let known_N = CLIENT.page(total % 7)?;
total += known_N.iter().sum::<u64>();
notes.push(format!(\"{known_N:?}\"));
",
    "
for page in 0..3 {
    for &item in CLIENT.page(page)? {
        if item % 2 == 0 {
            total += item;
        }
    }
}
",
    "
let text_N = format!(\" {total} \");
let rate_N: u64 = text_N.trim().parse()?;
total = total.saturating_mul(rate_N) / 100;
",
    "
if total > LIMIT {
    TOO_MUCH;
}
",
    "
let (mut low_N, mut high_N) = (0, total);
while low_N < high_N {
    let middle = u64::midpoint(low_N, high_N);
    if middle * middle < total {
        low_N = middle + 1;
    } else {
        high_N = middle;
    }
}
total += low_N;
",
    COUNTED,
    CHAIN,
    MATCHED,
    "
let page_N = CLIENT.page(1)?;
let Some(&first_N) = page_N.first() else {
    TOO_MUCH;
};
total += first_N;
",
];

const COUNTED: &str = "
let mut counts_N: BTreeMap<String, u64> = BTreeMap::new();
for word in notes.iter().flat_map(|note| note.split(' ')) {
    *counts_N.entry(word.to_lowercase()).or_default() += 1;
}
total += counts_N.values().copied().max().unwrap_or(1);
";

const CHAIN: &str = "
let fees_N: Vec<u64> = (0..total % 10).map(|n| n * 3).filter(|fee| fee % 2 == 0).collect();
total += fees_N.iter().sum::<u64>();
";

const MATCHED: &str = "
let fee_N = match total % 4 {
    0 => 0,
    1 | 2 => total / 50,
    _ => total / 100 + 30,
};
total += fee_N;
notes.push(format!(\"a fee of {fee_N}\"));
";
