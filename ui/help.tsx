import { useLayoutEffect, useRef } from "preact/hooks";
import { keysText, SHORTCUTS } from "./keys.ts";
import { isHelpOpen } from "./page-state.ts";

export function Help() {
  const dialog = useRef<HTMLDialogElement>(null);
  const close = () => {
    isHelpOpen.value = false;
  };
  useLayoutEffect(() => {
    const element = dialog.current as HTMLDialogElement;
    element.showModal();
    // Gives the focus back to where it was.
    return () => element.close();
  }, []);
  return (
    <dialog ref={dialog} onClose={close} aria-labelledby="help-title">
      <h2 id="help-title">Keys</h2>
      <dl class="keys">
        {SHORTCUTS.flatMap((shortcut) => [
          <dt key={`${shortcut.about} keys`}>
            {keysText(shortcut).map((keys) => (
              <kbd key={keys}>{keys}</kbd>
            ))}
          </dt>,
          <dd key={shortcut.about}>{shortcut.about}</dd>,
        ])}
      </dl>
      <button type="button" onClick={close}>
        Close
      </button>
    </dialog>
  );
}
