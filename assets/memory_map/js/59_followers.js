// Two pictures of one story: a map that follows another shows, frame by frame, what stands beside the other's frame.

const mountedMaps = new Set();

// Show every follower of `leader` the frame that stands beside the leader's.
function moveFollowers(leader, moves) {
  for (const map of mountedMaps) map.follow(leader, moves);
}

// Followers have the room that the leader leaves.
function relayoutFollowers(leader) {
  for (const map of mountedMaps) if (map.follows?.trace_id === leader.traceId) map.relayout();
}

// The map whose frames `trace_id` names, when it is on the page.
function leaderOf({ trace_id }) {
  return [...mountedMaps].find((map) => map.traceId === trace_id && map.painted >= 0);
}
