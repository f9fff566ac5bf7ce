(origins, localItems, sessionItems) => {
  if (!origins.includes(location.origin)) return;
  const seed = (storage, items) => {
    for (const [name, value] of items) {
      // A later document of the visit keeps what the page has stored since.
      if (storage.getItem(name) === null) storage.setItem(name, value);
    }
  };
  try {
    seed(localStorage, localItems);
    seed(sessionStorage, sessionItems);
  } catch {
    // Sandboxed documents have no storage.
  }
}
