(startMs) => {
  // Proxies look like the native functions: their names, lengths and texts stay the same.
  const replace = (object, name, apply) => {
    const property = object && Object.getOwnPropertyDescriptor(object, name);
    if (property?.value) {
      const value = new Proxy(property.value, { apply });
      Object.defineProperty(object, name, { ...property, value });
    }
  };
  const replaceGetter = (object, name, change) => {
    const property = object && Object.getOwnPropertyDescriptor(object, name);
    if (property?.get) {
      const apply = (get, self, values) => change(Reflect.apply(get, self, values));
      const get = new Proxy(property.get, { apply });
      Object.defineProperty(object, name, { ...property, get });
    }
  };

  // Random numbers: xorshift (Marsaglia). Documents with different URLs get different ones, because
  // pages expect that the ids that their frames choose differ.
  let state = 0x9e3779b9;
  for (const character of location.href) {
    state = Math.imul(state ^ character.codePointAt(0), 0x01000193);
  }
  state ||= 1;
  const next = () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state >>> 0;
  };
  const fill = (bytes) => {
    for (let index = 0; index < bytes.length; index += 1) bytes[index] = next() >>> 24;
    return bytes;
  };
  replace(Math, 'random', () => ((next() >>> 5) * 2 ** 26 + (next() >>> 6)) / 2 ** 53);
  const random = globalThis.Crypto?.prototype;
  replace(random, 'getRandomValues', (native, self, values) => {
    // The native function refuses what is not a typed array of integers.
    const array = Reflect.apply(native, self, values);
    fill(new Uint8Array(array.buffer, array.byteOffset, array.byteLength));
    return array;
  });
  replace(random, 'randomUUID', () => {
    const bytes = fill(new Uint8Array(16));
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    const digits = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
    return digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  });

  // Dates.
  const elapsedMs = performance.now.bind(performance);
  const shiftMs = startMs - performance.timeOrigin;
  const now = () => Math.floor(startMs + elapsedMs());
  const NativeDate = Date;
  replace(NativeDate, 'now', now);
  const RepeatableDate = new Proxy(NativeDate, {
    apply: () => new NativeDate(now()).toString(),
    construct: (native, values, target) =>
      Reflect.construct(native, values.length === 0 ? [now()] : values, target),
  });
  const hidden = { writable: true, enumerable: false, configurable: true };
  Object.defineProperty(NativeDate.prototype, 'constructor', { ...hidden, value: RepeatableDate });
  Object.defineProperty(globalThis, 'Date', { ...hidden, value: RepeatableDate });

  // Pages subtract these times from dates.
  replaceGetter(globalThis.Performance?.prototype, 'timeOrigin', (time) => time + shiftMs);
  const timing = globalThis.PerformanceTiming?.prototype;
  for (const name of timing ? Object.getOwnPropertyNames(timing) : []) {
    replaceGetter(timing, name, (time) => (time === 0 ? 0 : Math.round(time + shiftMs)));
  }
}
