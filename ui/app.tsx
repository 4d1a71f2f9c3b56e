import { useEffect, useRef } from "preact/hooks";
import { CompareScreen } from "./compare/compare-screen.tsx";
import { FlowsScreen } from "./flows/flows-screen.tsx";
import { Strip } from "./flows/strip.tsx";
import { Help } from "./help.tsx";
import { type Command, commandOf, isFirstKey } from "./keys.ts";
import { MapScreen } from "./map/map-screen.tsx";
import * as page from "./page-state.ts";
import { PoliciesScreen } from "./policies/policies-screen.tsx";
import { PreviewPanel } from "./preview/preview-panel.tsx";
import { ProposePanel } from "./propose/propose-panel.tsx";
import { QueryField } from "./query/query-field.tsx";
import { outcomeOf } from "./runs/run-text.ts";
import { RunsScreen } from "./runs/runs-screen.tsx";
import type { Session } from "./session/session.ts";
import { SignIn } from "./session/sign-in.tsx";
import { SCREENS, type Screen, THEMES, type Theme, writeHash } from "./url-state.ts";
import { WhyDrawer } from "./why/why-drawer.tsx";

const TITLES: Readonly<Record<Screen, string>> = {
  flows: "Flows",
  map: "Map",
  policies: "Policies",
  compare: "Compare",
  runs: "Runs",
};
const THEME_SIGNS: Readonly<Record<Theme, string>> = { auto: "◐", light: "☀", dark: "☾" };
/** How long a `g` waits for the key after it. */
const SECOND_KEY_MS = 1_500;

export function App() {
  useKeys();
  const session = page.session.value;
  const { isExplained, flow, panel } = page.url.value;
  return (
    <>
      <header>
        <TopLine session={session} />
        {session && <QueryField />}
      </header>
      {session ? (
        <>
          {page.screen.value !== "policies" && <Strip />}
          {page.screen.value === "flows" && <FlowsScreen />}
          {page.screen.value === "map" && <MapScreen />}
          {page.screen.value === "policies" && <PoliciesScreen />}
          {page.screen.value === "compare" && <CompareScreen />}
          {page.screen.value === "runs" && <RunsScreen />}
          {panel === "none" && isExplained && flow !== "" && <WhyDrawer />}
          {panel === "propose" && <ProposePanel />}
          {panel === "preview" && <PreviewPanel />}
        </>
      ) : (
        <SignIn />
      )}
      {page.isHelpOpen.value && <Help />}
    </>
  );
}

function TopLine({ session }: { session: Session | undefined }) {
  const state = page.url.value;
  return (
    <div class="top">
      <span class="sign" aria-hidden="true">
        ◆
      </span>
      <h1>Flows</h1>
      {session && (
        <span class="dim" title={session.release}>
          cluster {session.cluster}
          {session.user && ` · ${session.user}`}
        </span>
      )}
      {session && (
        <nav aria-label="Screens">
          {SCREENS.filter((screen) => screen !== "runs" || session.runs).map((screen) => (
            <a
              key={screen}
              href={writeHash({ ...state, screen })}
              aria-current={state.screen === screen ? "page" : undefined}
            >
              {TITLES[screen]}
            </a>
          ))}
        </nav>
      )}
      {session && (!session.wholeCluster || state.namespace !== "") && <NamespaceField session={session} />}
      <span class="grow" />
      {session?.runs && <RunningRun />}
      {session && <LiveSign />}
      <ThemeButton />
      <button
        type="button"
        class="plain"
        aria-label="Keys"
        onClick={() => {
          page.isHelpOpen.value = true;
        }}
      >
        ?
      </button>
    </div>
  );
}

/** Said once when a run begins, because the text does not change until it ends. */
function RunningRun() {
  const state = page.url.value;
  const running = page.runs.value?.find((run) => run.outcome === "running" && !run.isCutOff);
  const { sign, word } = outcomeOf({ outcome: "running", isCutOff: false });
  return (
    <span class="running" aria-live="polite">
      {running && (
        <a href={writeHash({ ...state, screen: "runs", run: running.id })} title={running.title}>
          <span aria-hidden="true">{sign}</span> {word}: {running.title}
        </a>
      )}
    </span>
  );
}

function NamespaceField({ session }: { session: Session }) {
  const own = session.wholeCluster ? "" : session.namespace;
  return (
    <label class="namespace">
      namespace{" "}
      <input
        type="text"
        value={page.url.value.namespace || own}
        spellcheck={false}
        onChange={(event) => page.go({ namespace: event.currentTarget.value.trim() })}
      />
    </label>
  );
}

function LiveSign() {
  const { phase } = page.shown.value;
  const isLive = phase === "live" && !page.isPaused.value;
  const text = page.isPaused.value
    ? "paused"
    : { listing: "listing", live: "live", relisting: "live", retrying: "not connected", refused: "refused" }[phase];
  return <span class={isLive ? "live" : "dim"}>{isLive ? "● live" : `○ ${text}`}</span>;
}

function ThemeButton() {
  const { theme } = page.url.value;
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] as Theme;
  return (
    <button type="button" class="plain" aria-label={`Theme: ${theme}`} onClick={() => page.go({ theme: next })}>
      {THEME_SIGNS[theme]}
    </button>
  );
}

/** Keys for everything, wherever the focus is; a field for text has its own. */
function useKeys(): void {
  const before = useRef({ key: "", at: 0 });
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      const { key, at } = before.current;
      const isInTime = event.timeStamp - at < SECOND_KEY_MS;
      const command = commandOf(event.key, isInTime ? key : "", placeOf(event.target));
      before.current = { key: isFirstKey(event.key) ? event.key : "", at: event.timeStamp };
      if (command && perform(command, event.target)) event.preventDefault();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
}

function placeOf(target: EventTarget | null) {
  const name = target instanceof Element ? target.tagName : "";
  return { isText: name === "INPUT" || name === "TEXTAREA", isControl: name === "BUTTON" || name === "A" };
}

/** Whether the key had a meaning on this screen; what it would do otherwise is then left out. */
function perform(command: Command, target: EventTarget | null): boolean {
  const { screen, flow, isExplained, panel } = page.url.value;
  if (page.isHelpOpen.value) {
    if (command.do === "close") page.isHelpOpen.value = false;
    return true;
  }
  switch (command.do) {
    case "query":
      document.getElementById("query")?.focus();
      return true;
    case "step":
      // What scrolls by itself goes on doing so.
      if (screen === "runs" && Math.abs(command.by) === 1) {
        page.stepRun(command.by);
        return true;
      }
      if (screen !== "flows" || (target instanceof Element && target.closest(".drawer"))) return false;
      page.step(command.by);
      return true;
    case "explain":
      if (screen === "flows") page.explain(flow);
      return screen === "flows";
    case "close":
      if (panel !== "none") page.go({ panel: "none", gone: "" });
      else if (isExplained) page.go({ isExplained: false });
      document.querySelector<HTMLElement>(".grid, .map canvas")?.focus();
      return true;
    case "panel":
      page.go({ panel: command.panel });
      return true;
    case "screen":
      if (command.screen === "runs" && !page.session.value?.runs) return false;
      page.go({ screen: command.screen });
      return true;
    case "pause":
      if (screen !== "flows") return false;
      page.pause();
      return true;
    case "table":
      if (screen === "map") page.isMapTable.value = !page.isMapTable.value;
      return screen === "map";
    case "fit":
      page.fits.value++;
      return screen === "map";
    case "help":
      page.isHelpOpen.value = true;
      return true;
  }
}
