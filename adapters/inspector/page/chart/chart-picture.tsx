import { useLayoutEffect, useMemo, useRef } from 'preact/hooks'
import type { ChartNames } from '../../story/chart-path.ts'
import { PanZoom } from './pan-zoom.ts'

/** The marks in a picture: CSS classes by state id and by transition name. */
export interface ChartMarks {
  readonly states: (id: string) => readonly string[]
  readonly transitions: (name: string) => readonly string[]
}

export interface ChartPictureProps {
  /** For screen readers. */
  readonly label: string
  readonly svg: string
  readonly marks: ChartMarks
  /** Whether a scrolling box surrounds it: then the wheel zooms only with Ctrl. */
  readonly scrolls?: boolean
}

/** The CSS classes of marks; the picture's own style knows `active`, `visited`, `taken` and `uncovered`. */
const MARKS = ['active', 'visited', 'taken', 'last', 'uncovered', 'untaken', 'heat-1', 'heat-2', 'heat-3', 'heat-4']

/** A chart that is moved by dragging and by arrow keys, and zoomed by the wheel, + and −; 0 fits it. */
export function ChartPicture({ label, svg, marks, scrolls = false }: ChartPictureProps) {
  const box = useRef<HTMLDivElement>(null)
  const sheet = useRef<HTMLDivElement>(null)
  const panZoom = useRef<PanZoom>(undefined)
  const picture = useMemo(() => parsed(svg), [svg])

  useLayoutEffect(() => {
    const { current: outer } = box
    const { current: inner } = sheet
    if (outer && inner) {
      inner.replaceChildren(...(picture ? [picture] : []))
      panZoom.current = new PanZoom(outer, inner, scrolls)
    }
    return () => panZoom.current?.close()
  }, [picture])
  useLayoutEffect(() => {
    if (picture) mark(picture, marks)
    panZoom.current?.place()
  }, [picture, marks])

  return (
    <div class="chart">
      <div ref={box} class="chart-box" role="img" aria-label={label} tabIndex={0}>
        <div ref={sheet} class="chart-sheet" />
      </div>
      <div class="chart-zoom" role="group" aria-label="Zoom">
        <button type="button" onClick={() => panZoom.current?.zoom(1.25)} title="Zoom in (+)" aria-label="Zoom in">
          +
        </button>
        <button type="button" onClick={() => panZoom.current?.zoom(0.8)} title="Zoom out (−)" aria-label="Zoom out">
          −
        </button>
        <button type="button" onClick={() => panZoom.current?.fit()} title="Fit (0)">
          Fit
        </button>
      </div>
    </div>
  )
}

/** The ids of states and the names of transitions in a picture. */
export function namesIn(svg: string): ChartNames {
  const picture = parsed(svg)
  const namesOf = (attribute: string) =>
    new Set(
      Array.from(picture?.querySelectorAll(`[${attribute}]`) ?? [], element => element.getAttribute(attribute) ?? '')
    )
  return { states: namesOf('data-state'), transitions: [...namesOf('data-transition')] }
}

function parsed(svg: string): SVGSVGElement | undefined {
  const { documentElement } = new DOMParser().parseFromString(svg, 'image/svg+xml')
  return documentElement instanceof SVGSVGElement ? document.importNode(documentElement, true) : undefined
}

function mark(picture: SVGSVGElement, { states, transitions }: ChartMarks): void {
  for (const element of picture.querySelectorAll('[data-state]'))
    setMarks(element, states(element.getAttribute('data-state') ?? ''))
  for (const element of picture.querySelectorAll('[data-transition]'))
    setMarks(element, transitions(element.getAttribute('data-transition') ?? ''))
}

function setMarks(element: Element, wanted: readonly string[]): void {
  for (const name of MARKS) element.classList.toggle(name, wanted.includes(name))
}
