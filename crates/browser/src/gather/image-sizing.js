// Every <img> outside shadow trees with the attributes and styles that may size it. Shape:
// `ImageSizing` in the engine's facts.
({everyElement, describe}) => {
  const LISTED = 2000;

  const isLength = (text) => /^\s*\d/.test(text ?? '');

  const positionOf = (img) => {
    const isChosen = img.parentElement?.tagName === 'PICTURE';
    return getComputedStyle(isChosen ? img.parentElement : img).position;
  };

  const cssMatters = (img, {widthAttribute, heightAttribute, position}) => {
    const {width, height} = img.getBoundingClientRect();
    const isSized = isLength(widthAttribute) && isLength(heightAttribute);
    return !isSized && !['fixed', 'absolute'].includes(position) && (width > 0 || height > 0);
  };

  // Computed values, unlike those of getComputedStyle, are `auto` if only the image decides.
  const rulesOf = (img) => {
    const computed = img.computedStyleMap();
    const declared = (property) => {
      const value = String(computed.get(property) ?? 'auto');
      return value === 'auto' ? null : value;
    };
    return {
      width: declared('width'),
      height: declared('height'),
      aspectRatio: declared('aspect-ratio'),
    };
  };

  return everyElement('img')
    .filter((img) => !(img.getRootNode() instanceof ShadowRoot))
    .slice(0, LISTED)
    .map((img) => {
      const image = {
        src: img.currentSrc,
        widthAttribute: img.getAttribute('width'),
        heightAttribute: img.getAttribute('height'),
        position: positionOf(img),
        node: describe(img),
      };
      return {...image, rules: cssMatters(img, image) ? rulesOf(img) : null};
    });
}
