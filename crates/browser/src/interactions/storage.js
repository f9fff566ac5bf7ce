// Returns the items of both storages, or sets them if they are given.
((items) => {
  const stores = [];
  for (const name of ['localStorage', 'sessionStorage']) {
    // Documents without an origin have no storage.
    try {
      stores.push(globalThis[name]);
    } catch {
      return items ?? [];
    }
  }
  if (items) {
    stores.forEach((store, index) => {
      store.clear();
      for (const [name, value] of items[index] ?? []) store.setItem(name, value);
    });
    return items;
  }
  return stores.map((store) => Object.entries(store));
})
