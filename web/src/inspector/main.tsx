// Entry point of the inspector's page, which `adit tunnel --inspect` serves: the requests of the tunnels on
// this machine, live. It reads and changes them by the local API of src/inspector/api.ts.
import '@mantine/core/styles.css'
import '../base.css'
import { QueryClient } from '@tanstack/react-query'
import { Toasts } from '../components/toast.tsx'
import { mount } from '../mount.tsx'
import { App } from './app.tsx'

const queryClient = new QueryClient({
  defaultOptions: {
    queries: { networkMode: 'always', retry: false, refetchOnWindowFocus: false },
    // Variables contain secrets of signatures.
    mutations: { networkMode: 'always', gcTime: 0 },
  },
})

mount(
  queryClient,
  <>
    <App />
    <Toasts />
  </>,
)
