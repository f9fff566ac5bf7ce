(selector) => {
  try {
    return document.querySelector(selector) === null ? "missing" : "found";
  } catch {
    return "invalid";
  }
}
