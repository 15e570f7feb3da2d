/** Draws where the time of a cell goes: its causes, a table by rank, the steps, and the lines of code. */
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';
import { createRoot } from 'react-dom/client';
import type { PaceModel } from './pacemodel';
import { formatSeconds } from '../../../model/format/quantities';
import type { ICodeLine, IPace, ISlowCause } from '../../../services/protocol';
import { ErrorNote } from '../../../widgets/base/errornote';
import { useSignal } from '../../../widgets/base/hooks';
import { inWords } from '../../../services/words';
import { linkedPlace } from '../../../widgets/states/codelines';
import { LineTable, RankPaceTable } from './pacetables';
import { StepTrend } from './steptrend';

export interface IPaceViewProps {
  readonly model: PaceModel;
  readonly trans: TranslationBundle;
  goTo(place: ICodeLine): void;
  onClose(): void;
}

/** Draw into an element until the returned function is called. */
export function mountPace(host: HTMLElement, props: IPaceViewProps): () => void {
  host.textContent = '';
  const root = createRoot(host);
  root.render(<PaceView {...props} />);
  return () => root.unmount();
}

function PaceView({ model, trans, goTo, onClose }: IPaceViewProps): React.ReactElement {
  useSignal(model.changed);
  const { pace, error, hasEnded } = model;
  return (
    <>
      <div className="jpd-Pace-head">
        <b>{trans.__('Where the time goes')}</b>
        {pace && (
          <span className="jpd-Pace-faint">
            {hasEnded
              ? trans.__('measured for %1', formatSeconds(pace.seconds))
              : trans.__('measured for %1 so far', formatSeconds(pace.seconds))}
          </span>
        )}
        <button type="button" className="jpd-Ranks-action jpd-Pace-close" onClick={onClose}>
          {trans.__('Close')}
        </button>
      </div>
      {error && !pace && <ErrorNote error={error} />}
      {error && pace && <p className="jpd-Pace-faint">{trans.__('No newer numbers: %1', error.message)}</p>}
      {!pace && !error && <p className="jpd-Pace-faint">{trans.__('Loading\u2026')}</p>}
      {pace && <PaceBody {...{ pace, trans, goTo, hasEnded }} />}
    </>
  );
}

type IPaceBodyProps = Pick<IPaceViewProps, 'trans' | 'goTo'> & { pace: IPace; hasEnded: boolean };

function PaceBody({ pace, trans, goTo, hasEnded }: IPaceBodyProps): React.ReactElement {
  return (
    <>
      {pace.causes.length > 0 ? (
        <ul className="jpd-Pace-causes" aria-label={trans.__('Causes')}>
          {pace.causes.map(cause => (
            <Cause key={`${cause.kind} ${cause.ranks}`} {...{ cause, trans, goTo }} />
          ))}
        </ul>
      ) : (
        <p className="jpd-Pace-faint">
          {hasEnded ? trans.__('At its end, nothing made it slow.') : trans.__('Nothing was found that makes it slow.')}
        </p>
      )}
      <div className="jpd-Pace-columns">
        {pace.ranks.length > 0 && <RankPaceTable rows={pace.ranks} trans={trans} />}
        <div>
          {pace.steps && <StepTrend steps={pace.steps} trans={trans} />}
          {pace.lines.length > 0 && <LineTable lines={pace.lines} trans={trans} goTo={goTo} />}
        </div>
      </div>
      {pace.unknown.map((sentence, i) => (
        <p key={sentence} className="jpd-Pace-faint">
          {inWords(trans, sentence, pace.unknown_words?.[i])}
        </p>
      ))}
    </>
  );
}

type ICauseProps = Pick<IPaceViewProps, 'trans' | 'goTo'> & { cause: ISlowCause };

function Cause({ cause, trans, goTo }: ICauseProps): React.ReactElement {
  const [before, link, after] = linkedPlace(trans, inWords(trans, cause.message, cause.message_words), cause.place);
  return (
    <li>
      <span className="jpd-Pace-cause">
        {before}
        {link && (
          <button type="button" className="jpd-NoteLine-link" onClick={() => goTo(cause.place!)}>
            {link}
          </button>
        )}
        {after}
      </span>
      <ul className="jpd-Pace-evidence">
        {cause.evidence.map((sentence, i) => (
          <li key={sentence}>{inWords(trans, sentence, cause.evidence_words?.[i])}</li>
        ))}
      </ul>
      <p>
        <b>{trans.__('To try:')}</b> {inWords(trans, cause.advice, cause.advice_words)}
      </p>
    </li>
  );
}
