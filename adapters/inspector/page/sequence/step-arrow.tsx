import type { ActorStep } from '../../feed.ts'
import { stateName, innermost } from '../../story/chart-path.ts'
import { shortId, timeText } from '../wording.ts'
import type { Lane } from './lanes.ts'

/** The width of a lane, in pixels. */
export const LANE_WIDTH = 136
/** The width of the time column, in pixels. */
export const TIME_WIDTH = 96

const HEIGHT = 30
const LINE = 21

/** One step: an arrow from the sender's lane to another, or a dot within one lane. */
export function StepArrow({
  step,
  name,
  sender,
  lanes
}: {
  readonly step: ActorStep
  readonly name: string
  readonly sender: string
  readonly lanes: readonly Lane[]
}) {
  const { kind, to, states = [] } = step
  const place = (key: string) => lanes.findIndex(lane => lane.key === key) * LANE_WIDTH + LANE_WIDTH / 2
  const target = place(to)
  const source = place(sender)
  const isWithin = source === target
  const direction = target > source ? 1 : -1
  const words = kind === 'microstep' ? `→ ${innermost(states).map(stateName).join(', ')}` : name
  return (
    <>
      <span class="step-time mono" style={{ width: `${TIME_WIDTH}px` }}>
        {timeText(step.atMs)}
      </span>
      <svg class={`step step-${kind}`} width={lanes.length * LANE_WIDTH} height={HEIGHT} aria-hidden="true">
        {lanes.map(({ key }) => (
          <line key={key} class="step-life" x1={place(key)} x2={place(key)} y1={0} y2={HEIGHT} />
        ))}
        {isWithin ? (
          <circle class="step-dot" cx={target} cy={HEIGHT / 2} r={4} />
        ) : (
          <>
            <line class="step-line" x1={source} x2={target - direction * 6} y1={LINE} y2={LINE} />
            <polygon
              class="step-head"
              points={`${target},${LINE} ${target - direction * 7},${LINE - 4} ${target - direction * 7},${LINE + 4}`}
            />
          </>
        )}
      </svg>
      <span class={`step-words step-words-${kind}`} style={wordsPlace(isWithin, source, target, lanes.length)}>
        {words}
      </span>
      <span class="unseen step-route">
        {isWithin ? titleOf(lanes, to) : `${titleOf(lanes, sender)} → ${titleOf(lanes, to)}`}
      </span>
    </>
  )
}

/** Above the middle of the arrow, or beside the dot. */
function wordsPlace(isWithin: boolean, source: number, target: number, lanes: number): Record<string, string> {
  if (!isWithin) {
    const left = Math.min(source, target)
    return {
      left: `${TIME_WIDTH + left + 8}px`,
      width: `${Math.abs(target - source) - 16}px`,
      textAlign: 'center',
      top: '2px'
    }
  }
  const isLast = target > (lanes - 1) * LANE_WIDTH
  return isLast
    ? {
        right: `calc(100% - ${TIME_WIDTH + target - 10}px)`,
        maxWidth: `${LANE_WIDTH * Math.max(1, lanes - 1)}px`,
        textAlign: 'right',
        top: '6px'
      }
    : { left: `${TIME_WIDTH + target + 10}px`, maxWidth: `${LANE_WIDTH}px`, top: '6px' }
}

function titleOf(lanes: readonly Lane[], key: string): string {
  const lane = lanes.find(lane => lane.key === key)
  return lane && lane.kind !== 'child' ? lane.kind : shortId(lane?.title ?? key)
}
