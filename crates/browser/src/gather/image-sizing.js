// Every <img> outside shadow trees with what may give it a size. Shape: `ImageSizing` in the engine's facts,
// its `rules` being `asked` here: the element's place in `plumblineImages`, or null where CSS cannot matter.
({everyElement, describe}) => {
  const LISTED = 2000;
  const ASKED = 500;

  const isLength = (text) => /^\s*\d/.test(text ?? '');

  const positionOf = (img) => {
    const isChosen = img.parentElement?.tagName === 'PICTURE';
    return getComputedStyle(isChosen ? img.parentElement : img).position;
  };

  const images = everyElement('img')
    .filter((img) => !(img.getRootNode() instanceof ShadowRoot))
    .slice(0, LISTED)
    .map((img) => ({
      img,
      src: img.currentSrc,
      widthAttribute: img.getAttribute('width'),
      heightAttribute: img.getAttribute('height'),
      position: positionOf(img),
      area: img.naturalWidth * img.naturalHeight || img.width * img.height,
      node: describe(img),
    }));

  const matters = ({img, widthAttribute, heightAttribute, position}) => {
    const {width, height} = img.getBoundingClientRect();
    const isSized = isLength(widthAttribute) && isLength(heightAttribute);
    return !isSized && !['fixed', 'absolute'].includes(position) && (width > 0 || height > 0);
  };

  // Time may run out: the largest first.
  const asked = images.filter(matters).sort((a, b) => b.area - a.area).slice(0, ASKED);
  globalThis.plumblineImages = asked.map(({img}) => img);

  return images.map((image) => {
    const {src, widthAttribute, heightAttribute, position, node} = image;
    const place = asked.indexOf(image);
    return {src, widthAttribute, heightAttribute, position, node, asked: place < 0 ? null : place};
  });
}
