import { render } from "preact";
import { App } from "./app.tsx";
import { start } from "./page-state.ts";

start();
render(<App />, document.getElementById("page") as HTMLElement);
