/** A popup below a toolbar item, outside of the toolbar, which clips its content. */
import React, { useEffect, useLayoutEffect, useRef, useState } from 'react';
import { createPortal } from 'react-dom';

interface IFloatingProps {
  anchor: React.RefObject<HTMLElement>;
  children: React.ReactNode;
  /** Called on a click outside, or Escape; without it, the popup stays open. */
  onClose?(): void;
}

export function Floating(props: IFloatingProps): React.ReactElement {
  const { anchor, children, onClose } = props;
  const box = useRef<HTMLDivElement>(null);
  const [place, setPlace] = useState({ left: 0, top: 0 });
  useLayoutEffect(() => {
    const rect = anchor.current?.getBoundingClientRect();
    const width = box.current?.offsetWidth ?? 0;
    if (rect) {
      const left = Math.min(rect.left, window.innerWidth - width - 8);
      setPlace({ left: Math.max(8, left), top: rect.bottom + 2 });
    }
  }, [anchor, children]);
  useEffect(() => {
    const onPointerDown = (event: PointerEvent): void => {
      const target = event.target as Node;
      if (!box.current?.contains(target) && !anchor.current?.contains(target)) {
        onClose?.();
      }
    };
    document.addEventListener('pointerdown', onPointerDown, true);
    return () => document.removeEventListener('pointerdown', onPointerDown, true);
  }, [anchor, onClose]);
  const onKeyDown = (event: React.KeyboardEvent): void => {
    // Do not trigger the notebook's shortcuts.
    event.stopPropagation();
    if (event.key === 'Escape') {
      onClose?.();
    }
  };
  return createPortal(
    <div ref={box} className="jpd-Floating" style={place} onKeyDown={onKeyDown}>
      {children}
    </div>,
    document.body
  );
}
