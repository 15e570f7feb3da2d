/** The fields of the form for a group on several nodes: what starts them, how many, and the options of that. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { HTMLSelect } from '@jupyterlab/ui-components';
import React, { useId } from 'react';
import { chosenLauncher, MAX_NODES, shownOption } from '../../../model/groups/startvalues';
import type { ILauncherOption, ILaunchers, ILauncherStatus } from '../../../services/protocol';
import { inWords } from '../../../services/words';
import { NotAnsweredLine } from '../../base/errornote';
import { type IAsked } from '../../base/hooks';
import { useSidebar } from '../context';
import { Folded, NumberRow, Row } from './formrow';
import type { IFieldProps } from './startfields';

interface ILauncherProps extends IFieldProps {
  readonly asked: IAsked<ILaunchers>;
}

/** Where the ranks run: this machine, until the server has asked the engines. */
export function LauncherField({ form, world, asked, found, set }: ILauncherProps): React.ReactElement | null {
  const { trans } = useSidebar();
  const chosen = chosenLauncher(form, world);
  const { launchers } = world;
  if (launchers?.length === 0) {
    return null;
  }
  const words = (launcher: ILauncherStatus): string => inWords(trans, launcher.text, launcher.text_words);
  const unusable = (launchers ?? []).map(launcher => ({
    label: labelOf(trans, launcher),
    reason: launcher.usable ? null : words(launcher)
  }));
  const note = launchers || asked.error ? undefined : trans.__('Looking for Slurm, Ray\u2026');
  return (
    <>
      <Row
        label={trans.__('Runs on')}
        problem={found.launcher}
        words={chosen && words(chosen)}
        note={note}
        unusable={unusable}
      >
        {id => (
          <HTMLSelect {...id} value={form.launcher} onChange={event => set({ launcher: event.target.value })}>
            {!launchers && <option value="local">{trans.__('This machine')}</option>}
            {!chosen && form.launcher !== 'local' && (
              <option value={form.launcher}>
                {launchers ? trans.__('%1 (not on this server)', form.launcher) : form.launcher}
              </option>
            )}
            {launchers?.map(launcher => (
              <option key={launcher.name} value={launcher.name} title={words(launcher)} disabled={!launcher.usable}>
                {launcher.usable ? labelOf(trans, launcher) : trans.__('%1 (not usable)', labelOf(trans, launcher))}
              </option>
            ))}
          </HTMLSelect>
        )}
      </Row>
      {asked.error && (
        <NotAnsweredLine {...asked} error={asked.error} what={trans.__('Other launchers could not be listed.')} />
      )}
      {chosen?.usable && form.launcher !== 'local' && <p className="jpd-StartForm-engine">{words(chosen)}</p>}
    </>
  );
}

/** A label in the page's language; labels of engines are names. */
function labelOf(trans: TranslationBundle, { label }: { readonly label: string }): string {
  return inWords(trans, label, [{ text: label, plural: null, values: [] }]);
}

export function NodesField({ form, found, set }: IFieldProps): React.ReactElement {
  const { trans } = useSidebar();
  return (
    <NumberRow
      label={trans.__('Nodes')}
      problem={found.nodes}
      max={MAX_NODES}
      value={form.nodes}
      change={nodes => set({ nodes })}
    />
  );
}

/** The options of the launcher: the common ones, and the others folded, of which few users need the last. */
export function OptionFields(props: IFieldProps): React.ReactElement | null {
  const { trans } = useSidebar();
  const chosen = chosenLauncher(props.form, props.world);
  if (!chosen || chosen.options.length === 0) {
    return null;
  }
  const field = (option: ILauncherOption) => <OptionField key={option.name} {...props} option={option} />;
  const folded = (title: string, options: readonly ILauncherOption[]) =>
    options.length > 0 && (
      <Folded title={title} isSet={options.some(({ name }) => props.form.options[name])}>
        {options.map(field)}
      </Folded>
    );
  return (
    <>
      {chosen.options.filter(option => option.common).map(field)}
      {folded(
        trans.__('More options of %1', chosen.label),
        chosen.options.filter(option => !option.common && !option.advanced)
      )}
      {folded(
        trans.__('Advanced'),
        chosen.options.filter(option => option.advanced)
      )}
    </>
  );
}

function optionWords(trans: TranslationBundle, option: ILauncherOption): { label: string; help: string } {
  return {
    label: inWords(trans, option.label, option.label_words),
    help: inWords(trans, option.help, option.help_words)
  };
}

function OptionField({ form, set, option }: IFieldProps & { option: ILauncherOption }): React.ReactElement {
  const { label, help } = optionWords(useSidebar().trans, option);
  const list = useId();
  const value = shownOption(form, option);
  const change = (text: string) => set({ options: { ...form.options, [option.name]: text } });
  if (option.kind === 'flag') {
    return (
      <label className="jpd-StartForm-flag" title={help}>
        <input
          type="checkbox"
          checked={value === 'true'}
          disabled={option.fixed}
          onChange={event => change(event.target.checked ? 'true' : 'false')}
        />
        {label}
      </label>
    );
  }
  return (
    <Row label={label} problem={undefined}>
      {id => (
        <>
          {option.kind === 'script' ? (
            <textarea
              {...id}
              className="jp-mod-styled"
              rows={3}
              value={value}
              title={help}
              placeholder={option.default}
              disabled={option.fixed}
              spellCheck={false}
              onChange={event => change(event.target.value)}
            />
          ) : (
            <input
              {...id}
              className="jp-mod-styled"
              value={value}
              title={help}
              placeholder={option.default || option.choices.join(', ')}
              disabled={option.fixed}
              list={option.choices.length > 0 ? list : undefined}
              spellCheck={false}
              onChange={event => change(event.target.value)}
            />
          )}
          {option.choices.length > 0 && (
            <datalist id={list}>
              {option.choices.map(choice => (
                <option key={choice} value={choice} />
              ))}
            </datalist>
          )}
        </>
      )}
    </Row>
  );
}
