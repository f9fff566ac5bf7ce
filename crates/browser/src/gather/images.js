// Every <img>. Shape: `Images` in the engine's facts. Asynchronous: natural sizes of images that
// were chosen from several are read from the browser's cache, for a bounded time.
async ({everyElement, describe, rectOf}) => {
  const LISTED = 2000;
  const MAX_SIZES = 200;
  // In slices, as other work may block the thread for longer than the whole time.
  const SLICES = 10;
  const SLICE_MS = 50;

  // naturalWidth of an image with srcset is corrected by density; a plain load gives the file's
  // own.
  const fileSize = (src) => new Promise((resolve) => {
    const image = new Image();
    image.onload = () => resolve({width: image.naturalWidth, height: image.naturalHeight});
    image.onerror = () => resolve(null);
    image.src = src;
  });

  const isChosen = (img) => Boolean(img.srcset) || img.parentElement?.tagName === 'PICTURE';

  const images = everyElement('img').slice(0, LISTED);
  const sources = [...new Set(images.filter(isChosen).map((img) => img.currentSrc).filter(Boolean))];
  const sizes = new Map();
  const pending = sources.slice(0, MAX_SIZES).map(async (src) => sizes.set(src, await fileSize(src)));
  let isKnown = false;
  const all = Promise.allSettled(pending).then(() => isKnown = true);
  for (let slice = 0; slice < SLICES && !isKnown; slice++) {
    await Promise.race([all, new Promise((resolve) => setTimeout(resolve, SLICE_MS))]);
  }

  return images.map((img) => {
    const style = getComputedStyle(img);
    return {
      src: img.currentSrc,
      srcset: img.srcset.slice(0, 5000),
      displayed: {width: img.width, height: img.height},
      natural: isChosen(img) ?
        sizes.get(img.currentSrc) ?? null :
        {width: img.naturalWidth, height: img.naturalHeight},
      rect: rectOf(img),
      objectFit: style.objectFit,
      imageRendering: style.imageRendering,
      node: describe(img),
    };
  });
}
