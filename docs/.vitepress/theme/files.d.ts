declare module '*.vue' {
  import type { DefineComponent } from 'vue'

  const component: DefineComponent<{ code: string }>
  export default component
}

declare module '*.css'
