/** A pace from less than this many seconds of work says more about one file than about the machine. */
const ENOUGH_TO_JUDGE = 20;

/**
 * Seconds until a run ends, from recorded seconds.
 * @param {{ waiting: number[], running: { recorded: number, elapsed: number }[], doneRecorded: number, spent: number, workers: number }} run
 *   recorded seconds of the files that wait, run and are done; `spent` is what the workers have used for those that are done
 */
export function secondsLeft({ waiting, running, doneRecorded, spent, workers }) {
  // A machine that is busy or slow takes its factor for the rest too.
  const pace = doneRecorded >= ENOUGH_TO_JUDGE ? spent / doneRecorded : 1;
  const inFlight = running.map(({ recorded, elapsed }) => Math.max(0, recorded * pace - elapsed));
  const longest = Math.max(0, ...inFlight, ...waiting.map((seconds) => seconds * pace));
  const work = sum(inFlight) + sum(waiting) * pace;
  return Math.max(longest, work / workers);
}

export function inMinutes(duration) {
  const seconds = Math.round(duration);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 10 ? `${minutes} min ${seconds % 60} s` : `${Math.round(seconds / 60)} min`;
}

function sum(numbers) {
  return numbers.reduce((total, number) => total + number, 0);
}
