import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

interface SidePanelProps {
  label: string;
  close(): void;
  isWide?: boolean;
  children: ComponentChildren;
}

/** Over the right side of a screen; it takes the focus when it opens. */
export function SidePanel({ label, close, isWide = false, children }: SidePanelProps) {
  const panel = useRef<HTMLElement>(null);
  useEffect(() => panel.current?.focus(), []);
  return (
    <aside class={isWide ? "drawer wide" : "drawer"} aria-label={label} tabIndex={-1} ref={panel}>
      <button type="button" class="plain close" aria-label="Close" onClick={close}>
        ×
      </button>
      {children}
    </aside>
  );
}
