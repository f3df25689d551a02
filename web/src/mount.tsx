// Mounts a page with the theme and the query client. Entry points import the styles first: those of a
// component have to follow the library's.
import { MantineProvider } from '@mantine/core'
import { type QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { type ReactNode, StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { ErrorBoundary } from './components/error-boundary.tsx'
import { cssVariables, theme } from './theme.ts'

const nonce = document.querySelector<HTMLMetaElement>('meta[name=csp-nonce]')?.content ?? ''
// react-remove-scroll, which Mantine's dialogs use, adds a style element and reads its nonce from here.
Object.assign(globalThis, { __webpack_nonce__: nonce })

export function mount(queryClient: QueryClient, page: ReactNode): void {
  createRoot(document.getElementById('root') as HTMLElement).render(
    <StrictMode>
      <MantineProvider
        theme={theme}
        cssVariablesResolver={cssVariables}
        defaultColorScheme="auto"
        getStyleNonce={() => nonce}
      >
        <ErrorBoundary>
          <QueryClientProvider client={queryClient}>{page}</QueryClientProvider>
        </ErrorBoundary>
      </MantineProvider>
    </StrictMode>,
  )
}
