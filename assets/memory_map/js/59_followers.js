// Two pictures of one story: a map that follows another shows, frame by frame, what stands beside the other's frame.

const living = new Set();

// Show every follower of `leader` the frame that stands beside the leader's.
function moveFollowers(leader, moves) {
  for (const map of living) map.follow(leader, moves);
}

// The map whose frames `trace_id` names, when it is on the page.
function leaderOf({ trace_id }) {
  return [...living].find((map) => map.traceId === trace_id && map.painted >= 0);
}
