// Returns the first visible element of this list, or the first if none is visible.
function () {
  const visible = this.find((element) => element.checkVisibility?.({ visibilityProperty: true }));
  return visible ?? this[0] ?? null;
}
