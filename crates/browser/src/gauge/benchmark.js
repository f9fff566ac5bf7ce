// Lighthouse's BenchmarkIndex: the mean of two figures, each a tenth of how often per second
//  - a string of 10,000 letters can be grown letter by letter (allocation and garbage collection),
//  - 100,000 numbers can be copied from one array to another (neither).
// Lighthouse gives each part 500 ms (core/lib/page-functions.js, version 13). Here the time is spent in
// several rounds, of which the median counts: one interruption spoils one round.
//
// Defined once and called again and again: a function that is new is measured while it is compiled.
(partMs, rounds) => {
  const perSecond = (work, workPerLook) => {
    const start = performance.now();
    let done = 0;
    let elapsed = 0;
    do {
      for (let i = 0; i < workPerLook; i++) work(done++);
      elapsed = performance.now() - start;
    } while (elapsed < partMs);
    return done / (elapsed / 1000);
  };

  const growString = () => {
    let text = '';
    for (let i = 0; i < 10000; i++) text += 'a';
    // Uses the result, so that the loop cannot be optimised away.
    if (text.length !== 10000) throw new Error('letters were lost');
  };

  const even = Array.from({length: 100000}, (_, i) => i);
  const odd = even.slice();
  const copyNumbers = (turn) => {
    const from = turn % 2 === 0 ? even : odd;
    const to = turn % 2 === 0 ? odd : even;
    for (let i = 0; i < from.length; i++) to[i] = from[i];
  };

  const indices = [];
  for (let round = 0; round < rounds; round++) {
    const strings = perSecond(growString, 1) / 10;
    const copies = perSecond(copyNumbers, 10) / 10;
    indices.push((strings + copies) / 2);
  }
  indices.sort((a, b) => a - b);
  return indices[Math.floor(rounds / 2)];
}
