/**
 * Events of long work, as an async iterable: the work runs at its own pace, the listener reads at its own. The
 * iterable ends, or throws, as the work does. Work is not stopped by a listener that leaves; that is what signals are for.
 */
export async function* eventStream<E>(
  work: (emit: (event: E) => void) => Promise<void>,
): AsyncGenerator<E, void, undefined> {
  const emitted: E[] = [];
  let wake = () => {};
  let over = false;
  const working = work((event) => {
    emitted.push(event);
    wake();
  }).finally(() => {
    over = true;
    wake();
  });
  // Looked at below, when everything emitted before it was read.
  working.catch(() => {});
  for (;;) {
    while (emitted.length > 0) yield emitted.shift() as E;
    if (over) break;
    await new Promise<void>((resolve) => {
      wake = resolve;
      if (emitted.length > 0 || over) resolve();
    });
  }
  await working;
}
