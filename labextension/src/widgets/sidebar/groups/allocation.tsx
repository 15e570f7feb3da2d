/** The launcher's report on a group's nodes, and the command to run where nodes are missing. */
import React from 'react';
import type { IGroup } from '../../../services/protocol';
import { inWords } from '../../../services/words';
import { useSidebar } from '../context';

export function AllocationNote({ group }: { group: IGroup }): React.ReactElement | null {
  const { trans } = useSidebar();
  const { allocation, join } = group;
  if (!allocation && !join) {
    return null;
  }
  return (
    <div className="jpd-Allocation" data-state={allocation?.state} role="status">
      {allocation && (
        <p className={allocation.can_start ? '' : 'jpd-Allocation-warning'}>
          {inWords(trans, allocation.text, allocation.text_words)}
        </p>
      )}
      {allocation?.warning && (
        <p className="jpd-Allocation-warning">{inWords(trans, allocation.warning, allocation.warning_words)}</p>
      )}
      {join && (
        <>
          <p>{trans.__('Run this on each machine that is missing:')}</p>
          <code className="jpd-Allocation-command">{join}</code>
        </>
      )}
    </div>
  );
}
