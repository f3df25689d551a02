import { Anchor, Kbd, Text } from '@mantine/core'
import classes from './detail.module.css'

interface NoSelectionProps {
  isEmpty: boolean
  onShowKeys: () => void
}

export const NoSelection = ({ isEmpty, onShowKeys }: NoSelectionProps) => (
  <section className={classes.pane} aria-label="Selected request">
    <Text c="dimmed" ta="center" mt="20vh">
      {isEmpty ? (
        'Headers, bodies and timings of a request are shown here.'
      ) : (
        <>
          Select a request, or move through the list with <Kbd>j</Kbd> and <Kbd>k</Kbd>.{' '}
          <Anchor component="button" inherit onClick={onShowKeys}>
            Keyboard shortcuts
          </Anchor>
        </>
      )}
    </Text>
  </section>
)
