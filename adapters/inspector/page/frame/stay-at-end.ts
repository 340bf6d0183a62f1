import { useLayoutEffect, useRef } from 'preact/hooks'

/** How far from the end still counts as at the end, in pixels. */
const NEAR = 60

/** Keeps a box at its end while its content grows, pictures that load late included, until somebody scrolls away. */
export function useStayAtEnd() {
  const box = useRef<HTMLDivElement>(null)
  const content = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => {
    const { current: outer } = box
    const leave = new AbortController()
    let isAtEnd = true
    outer?.addEventListener('scroll', () => (isAtEnd = outer.scrollTop + outer.clientHeight >= outer.scrollHeight - NEAR), { signal: leave.signal })
    const watch = new ResizeObserver(() => isAtEnd && outer?.scrollTo({ top: outer.scrollHeight }))
    for (const element of [outer, content.current]) if (element) watch.observe(element)
    return () => {
      leave.abort()
      watch.disconnect()
    }
  }, [])
  return { box, content }
}
