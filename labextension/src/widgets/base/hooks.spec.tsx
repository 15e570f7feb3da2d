import React, { useLayoutEffect } from 'react';
import { createRoot } from 'react-dom/client';
import { expect, test } from 'vitest';
import { ChangingModel } from '../../model/changing';
import { useSignal } from './hooks';

class Numbered extends ChangingModel {
  value = 1;

  set(value: number): void {
    this.value = value;
    this.emitChanged();
  }
}

test('what changes after a component was rendered is shown, also before the component follows the signal', async () => {
  const model = new Numbered();
  const Value = (): React.ReactElement => {
    useSignal(model.changed);
    return <p>{model.value}</p>;
  };
  const Meanwhile = (): null => {
    useLayoutEffect(() => model.set(2), []); // before the effects in which components connect
    return null;
  };
  const node = document.createElement('div');
  const root = createRoot(node);
  root.render(
    <>
      <Value />
      <Meanwhile />
    </>
  );
  await expect.poll(() => node.textContent).toBe('2');
  model.set(3);
  await expect.poll(() => node.textContent).toBe('3');
  root.unmount();
  model.dispose();
});
