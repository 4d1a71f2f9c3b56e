/** A vitest reporter: names the tests that needed a second try, says why tests were skipped, and ends with `N passed, N failed, N skipped` on a line of its own. */
export default class CountReporter {
  onTestRunEnd(modules, unhandledErrors) {
    // The default reporter still has its summary to print when this is called.
    process.on("exit", () => process.stdout.write(`\n${report(modules, unhandledErrors)}`));
  }
}

export function report(modules, unhandledErrors) {
  const counts = { passed: 0, failed: unhandledErrors.length, skipped: 0 };
  const skips = new Map();
  const again = [];
  for (const testModule of modules) {
    const tests = [...testModule.children.allTests()];
    // A file that could not be loaded has no tests to fail, and must not look like one with nothing to say.
    if (testModule.state() === "failed" && !tests.some((test) => test.result().state === "failed")) counts.failed++;
    for (const test of tests) {
      const { state, note } = test.result();
      const retries = test.diagnostic?.()?.retryCount ?? 0;
      if (retries > 0) again.push(`tried again, ${state}: ${testModule.relativeModuleId}: ${test.fullName}\n`);
      if (state === "pending" || state === "skipped") {
        counts.skipped++;
        const why = `${testModule.relativeModuleId}: ${note ?? `marked as skipped: ${suiteOf(test)}`}`;
        skips.set(why, (skips.get(why) ?? 0) + 1);
      } else counts[state]++;
    }
  }
  const lines = [...skips].map(([why, times]) => `skipped ${times}: ${why}\n`);
  return `${again.join("")}${lines.join("")}${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped\n`;
}

function suiteOf(test) {
  return test.parent.type === "suite" ? test.parent.fullName : test.fullName;
}
