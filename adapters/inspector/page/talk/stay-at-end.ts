import { useLayoutEffect, useRef, useState } from 'preact/hooks'

/** The distance in pixels that still counts as the end. */
const NEAR = 60

/**
 * Keeps a box scrolled to its end while its content grows, even by late pictures, until the reader scrolls away. In a
 * newly chosen context it begins at the end. Choosing a task that is out of sight shows where it begins.
 */
export function useStayAtEnd(context: string | undefined, task: string | undefined) {
  const box = useRef<HTMLDivElement>(null)
  const content = useRef<HTMLDivElement>(null)
  const isAtEnd = useRef(true)
  const shown = useRef({ context, task })
  const [isAway, setIsAway] = useState(false)
  const toEnd = () => {
    isAtEnd.current = true
    box.current?.scrollTo({ top: box.current.scrollHeight })
    setIsAway(false)
  }
  useLayoutEffect(() => {
    const { current: outer } = box
    const leave = new AbortController()
    let lastTop = 0
    outer?.addEventListener(
      'scroll',
      () => {
        // Content that grew after a scroll is no sign that the reader went up.
        if (outer.scrollTop + outer.clientHeight >= outer.scrollHeight - NEAR) isAtEnd.current = true
        else if (outer.scrollTop < lastTop) isAtEnd.current = false
        lastTop = outer.scrollTop
        setIsAway(!isAtEnd.current)
      },
      { signal: leave.signal }
    )
    const watch = new ResizeObserver(() => isAtEnd.current && outer?.scrollTo({ top: outer.scrollHeight }))
    for (const element of [outer, content.current]) if (element) watch.observe(element)
    return () => {
      leave.abort()
      watch.disconnect()
    }
  }, [])
  useLayoutEffect(() => {
    const before = shown.current
    shown.current = { context, task }
    if (before.context !== context) return toEnd()
    if (before.task === task || task === undefined) return
    const run = content.current?.querySelector(`[data-task="${CSS.escape(task)}"]`)
    // A task that is not here yet is the newest.
    if (!run) return toEnd()
    isAtEnd.current = false
    run.scrollIntoView({ block: 'center' })
  }, [context, task])
  return { box, content, isAway, toEnd }
}
