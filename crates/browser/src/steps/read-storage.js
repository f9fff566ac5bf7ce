() => {
  const items = (storage) => Object.fromEntries(Object.entries(storage));
  try {
    return JSON.stringify({
      origin: location.origin,
      localStorage: items(localStorage),
      sessionStorage: items(sessionStorage),
    });
  } catch {
    // Sandboxed documents have no storage.
    return "";
  }
}
