/** Sections of the sidebar that other extensions add. */
import { Widget } from '@lumino/widgets';
import React, { useLayoutEffect, useRef } from 'react';
import { guarded } from '../../model/contributions';
import type { IContributions, ISidebarSection } from '../../tokens';
import { useSignal } from '../base/hooks';
import { Section } from './section';

export function AddedSections({ sections }: { sections: IContributions<ISidebarSection> }): React.ReactElement {
  useSignal(sections.changed);
  return (
    <>
      {sections.items.map(section => (
        <Section key={section.id} title={section.title}>
          <Hosted section={section} />
        </Section>
      ))}
    </>
  );
}

/** A Lumino widget among React's: attached while it is seen. */
function Hosted({ section }: { section: ISidebarSection }): React.ReactElement {
  const node = useRef<HTMLDivElement>(null);
  // A layout effect: it is cleaned up while the node is still in the page, where Lumino wants it.
  useLayoutEffect(() => {
    let widget: Widget | null = null;
    const what = `the section '${section.id}' of the sidebar`;
    guarded(
      what,
      () => {
        widget = section.createWidget();
        Widget.attach(widget, node.current!);
      },
      undefined
    );
    return () => guarded(what, () => widget?.dispose(), undefined);
  }, [section]);
  return <div ref={node} className="jpd-Section-added" />;
}
