(text) => {
  const collapse = (string) => string.replace(/\s+/g, " ").trim();
  const shown = document.documentElement?.innerText ?? "";
  return collapse(shown).includes(collapse(text)) ? "found" : "missing";
}
