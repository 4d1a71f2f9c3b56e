import { expect, it } from "vitest";
import { movedRange, type StripRange } from "./strip-range.ts";

const span = { since: 0, until: 100, stepMs: 1 };
const press = (range: StripRange | undefined, key: string, shiftKey = false) =>
  movedRange(range, { key, shiftKey }, span);

it("begins at the end, and moves by points and by pages within what is shown", () => {
  expect(press(undefined, "ArrowLeft")).toEqual({ since: 99, until: 100 });
  expect(press({ since: 50, until: 52 }, "ArrowLeft")).toEqual({ since: 49, until: 51 });
  expect(press({ since: 50, until: 52 }, "PageDown")).toEqual({ since: 60, until: 62 });
  expect(press({ since: 3, until: 5 }, "PageUp")).toEqual({ since: 0, until: 2 });
  expect(press({ since: 97, until: 100 }, "ArrowRight")).toEqual({ since: 97, until: 100 });
  expect(press({ since: 50, until: 52 }, "Home")).toEqual({ since: 0, until: 1 });
  expect(press({ since: 50, until: 52 }, "End")).toEqual({ since: 99, until: 100 });
});

it("grows with shift at the end that the key points to", () => {
  expect(press({ since: 50, until: 52 }, "ArrowLeft", true)).toEqual({ since: 49, until: 52 });
  expect(press({ since: 50, until: 52 }, "ArrowRight", true)).toEqual({ since: 50, until: 53 });
  expect(press({ since: 50, until: 99 }, "PageDown", true)).toEqual({ since: 50, until: 100 });
});

it("leaves other keys to the page", () => {
  expect(press({ since: 50, until: 52 }, "j")).toBeUndefined();
});
