/**
 * The part of React that the hooks use, so that taskchart compiles without the types of React. Users have the types of
 * their React.
 */
declare module 'react' {
  export type ReactNode = object | string | number | boolean | null | undefined
  export interface Context<T> {
    readonly Provider: (props: { readonly value: T; readonly children?: ReactNode }) => ReactNode
  }
  export function createContext<T>(value: T): Context<T>
  export function createElement<Props>(
    type: (props: Props) => ReactNode,
    props: Props,
    ...children: ReactNode[]
  ): ReactNode
  export function useCallback<F>(callback: F, dependencies: readonly unknown[]): F
  export function useContext<T>(context: Context<T>): T
  export function useEffect(effect: () => (() => void) | undefined, dependencies: readonly unknown[]): void
  export function useRef<T>(value: T): { current: T }
  export function useState<T>(value: T | (() => T)): [T, (next: T | ((before: T) => T)) => void]
  export function useSyncExternalStore<T>(
    subscribe: (changed: () => void) => () => void,
    snapshot: () => T,
    serverSnapshot: () => T
  ): T
}
