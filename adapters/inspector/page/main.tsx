import { computed, effect } from '@preact/signals'
import { type ComponentType, render } from 'preact'
import { openAgent } from './agent/agent.ts'
import { followTasks, showExample } from './agent/task-log.ts'
import { ChartPanel } from './chart/chart-panel.tsx'
import { hello, openFeed } from './feed/feed.ts'
import { askForFrames, FramesPanel } from './frames-panel.tsx'
import { Header, Help, isHelpOpen, keepTheme } from './header.tsx'
import { NodesPanel } from './nodes-panel.tsx'
import { focusOn } from './page.ts'
import { TaskError } from './parts.tsx'
import { PathsPanel } from './paths/paths-panel.tsx'
import { keepAddress, part, type PartName, PARTS, phoneView, showTalk, taskId } from './selection.ts'
import { SequencePanel } from './sequence-panel.tsx'
import { StoryPanel } from './story/story-panel.tsx'
import { TalkPanel } from './talk/talk-panel.tsx'
import { chooseFirst, startNew, TaskList } from './task-list.tsx'
import { startAtNewest, step, TimeBar } from './time-bar.tsx'
import { TimelinePanel } from './timeline-panel.tsx'

interface Panel {
  readonly label: string
  /** The content of the tab, in one line. */
  readonly about: string
  readonly panel: ComponentType
}

const PANELS: Readonly<Record<PartName, Panel>> = {
  story: { label: 'Story', about: 'The messages beside the lit chart', panel: StoryPanel },
  chart: { label: 'Chart', about: 'The charts of the agent, lit by the chosen task', panel: ChartPanel },
  sequence: { label: 'Sequence', about: 'The events that actors send each other', panel: SequencePanel },
  timeline: {
    label: 'Timeline',
    about: 'The task, its artifacts and its history at each moment',
    panel: TimelinePanel
  },
  frames: { label: 'Frames', about: 'The requests and answers on the wire', panel: FramesPanel },
  talk: { label: 'Talk', about: 'The messages alone, to write and answer', panel: TalkPanel },
  paths: { label: 'Paths', about: 'The paths that tests took, and what is proved', panel: PathsPanel },
  nodes: { label: 'Nodes', about: 'The nodes of the cluster', panel: NodesPanel }
}

/** The tabs above which the time of the chosen task is; the story has it below. */
const TIMED: ReadonlySet<PartName> = new Set(['chart', 'sequence', 'talk', 'timeline'])

/** The tabs of this agent: one without a cluster has no nodes. */
const shownParts = computed(() => PARTS.filter(name => name !== 'nodes' || name === part.value || hello.value?.isNode))

/** Keeps the chosen tab in sight, where the tabs scroll. */
function showTab(): void {
  effect(() => {
    const id = `tab-${part.value}`
    requestAnimationFrame(() => document.getElementById(id)?.scrollIntoView({ block: 'nearest', inline: 'nearest' }))
  })
}

/** The tabs (WAI-ARIA), with arrow keys, Home and End. */
function Tabs() {
  const { panel: Panel, label } = PANELS[part.value]
  return (
    <main class="parts-of-page">
      <div class="tabs">
        <button type="button" class="plain to-list" onClick={() => (phoneView.value = 'list')}>
          ← Tasks
        </button>
        <div role="tablist" aria-label="Parts" class="tablist" onKeyDown={press}>
          {shownParts.value.map(name => (
            <button
              key={name}
              type="button"
              role="tab"
              id={`tab-${name}`}
              title={PANELS[name].about}
              aria-selected={name === part.value}
              aria-controls="part"
              tabIndex={name === part.value ? 0 : -1}
              onClick={() => (part.value = name)}
            >
              {PANELS[name].label}
            </button>
          ))}
        </div>
      </div>
      {part.value !== 'talk' && part.value !== 'story' && <TaskError taskId={taskId.value} />}
      {TIMED.has(part.value) && <TimeBar />}
      <div role="tabpanel" id="part" aria-labelledby={`tab-${part.value}`} aria-label={label} class="part-box">
        <Panel />
      </div>
    </main>
  )
}

function press(event: KeyboardEvent): void {
  const parts = shownParts.peek()
  const index = parts.indexOf(part.peek())
  const steps: Readonly<Record<string, number>> = {
    ArrowRight: index + 1,
    ArrowLeft: index - 1 + parts.length,
    Home: 0,
    End: parts.length - 1
  }
  const to = steps[event.key]
  const name = to === undefined ? undefined : parts[to % parts.length]
  if (!name) return
  event.preventDefault()
  part.value = name
  document.getElementById(`tab-${name}`)?.focus()
}

function App() {
  return (
    <>
      <Header />
      <TaskList />
      <Tabs />
      <Help />
    </>
  )
}

/** Handles the page's keyboard shortcuts, except in input fields. */
function hearKeys(): void {
  document.addEventListener('keydown', event => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return
    if (event.key === 'Escape') return toList()
    if (isTyping(event.target)) return
    const act = actOf(event.key)
    if (!act) return
    event.preventDefault()
    act()
  })
}

function actOf(key: string): (() => void) | undefined {
  if (key === '/') return () => ((phoneView.value = 'list'), focusOn('#search'))
  if (key === '?') return () => (isHelpOpen.value = true)
  if (key === 'm') return () => talk()
  if (key === ',') return () => step(-1)
  if (key === '.') return () => step(1)
  if (key === 'n') return () => startNew()
  const chosen = /^\d$/.test(key) ? PARTS[Number(key) - 1] : undefined
  return chosen && (() => (part.value = chosen))
}

/** Tells the styles which of list and task a small screen shows. */
function showView(): void {
  effect(() => void (document.documentElement.dataset.view = phoneView.value))
}

function talk(): void {
  showTalk()
  focusOn('#composer')
}

function toList(): void {
  phoneView.value = 'list'
  focusOn('.tasks [role=listbox]')
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName))
  )
}

for (const begin of [
  keepTheme,
  keepAddress,
  hearKeys,
  openFeed,
  openAgent,
  followTasks,
  showExample,
  chooseFirst,
  startAtNewest,
  askForFrames,
  showTab,
  showView
])
  begin()

render(<App />, document.body)
