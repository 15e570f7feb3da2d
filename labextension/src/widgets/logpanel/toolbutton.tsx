/** A button of the rank output panel's toolbar. */
import type { LabIcon } from '@jupyterlab/ui-components';
import React from 'react';

export interface ILogToolButtonProps {
  readonly icon: LabIcon;
  readonly label: string;
  /** For a toggle: whether it is on. */
  readonly pressed?: boolean;
  readonly disabled?: boolean;
  readonly onClick: () => void;
}

export function LogToolButton(props: ILogToolButtonProps): React.ReactElement {
  return (
    <button
      type="button"
      className="jpd-LogTool"
      title={props.label}
      aria-label={props.label}
      aria-pressed={props.pressed}
      disabled={props.disabled}
      onClick={props.onClick}
    >
      <props.icon.react tag="span" width="16px" />
    </button>
  );
}
