import { expect, it } from "vitest";
import { Screen } from "./screen.mjs";

const CLEAR = "\r\x1b[2K";

function screen(terminal) {
  const written = [];
  const out = { write: (text) => written.push(text), ...terminal };
  return { screen: new Screen(out), text: () => written.splice(0).join("") };
}

it("a pipe gets whole lines, and no live line", () => {
  const { screen: on, text } = screen({});
  on.live("1/3");
  on.print("a begin");
  expect(text()).toBe("");
  on.print("ning\nand a part");
  expect(text()).toBe("a beginning\n");
});

it("on a terminal the live line stays below what is printed", () => {
  const { screen: on, text } = screen({ isTTY: true, columns: 80 });
  on.live("1/3");
  expect(text()).toBe(`${CLEAR}1/3`);
  on.line("ok");
  expect(text()).toBe(`${CLEAR}ok\n1/3`);
  on.live("");
  expect(text()).toBe(CLEAR);
  on.line("end");
  expect(text()).toBe("end\n");
});

it("the live line is no longer than the terminal is wide", () => {
  const { screen: on, text } = screen({ isTTY: true, columns: 5 });
  on.live("123456789");
  expect(text()).toBe(`${CLEAR}1234`);
});
