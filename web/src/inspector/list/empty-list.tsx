// What to do when nothing was recorded yet.
import { Box } from '@mantine/core'
import { CopyBlock } from '../../components/copy.tsx'
import { EmptyState } from '../../components/lists/query-states.tsx'
import { TunnelIcon } from '../../icons.tsx'
import { useLive } from '../live/use-live.ts'

export function EmptyList() {
  const tunnels = useLive((state) => state.tunnels)
  const url = tunnels.find((tunnel) => tunnel.url !== '')?.url
  return (
    <Box p="md">
      <EmptyState
        icon={<TunnelIcon size={36} />}
        title="No requests yet"
        action={url !== undefined && <CopyBlock text={`curl ${url}`} name="Copy command" />}
      >
        {url === undefined
          ? 'The tunnel is not open yet. Requests appear here as they arrive.'
          : 'Requests appear here as they arrive. Open the public URL in a browser, or send one:'}
      </EmptyState>
    </Box>
  )
}
