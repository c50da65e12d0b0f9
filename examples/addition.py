"""Pairs of digits of which only the sum is known: a network learns to read digits, and never sees a label."""

import torch
from sklearn.datasets import load_digits
from torch import nn

import lbm

images, labels = map(torch.tensor, load_digits(return_X_y=True))
images, labels = images.float() / 16, labels.long()
torch.manual_seed(0)
torch.set_num_threads(1)  # so small a network is slower with more
order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
train, test = order[:1400].view(2, -1), order[1400:1796].view(2, -1)
sums = labels[train[0]] + labels[train[1]]

RULES = "\n".join(
    [f"exactly(1, {', '.join(f'{name}({i})' for i in range(size))})" for name, size in (("x", 10), ("y", 10))]
    + [f"exactly(1, {', '.join(f'sum({i})' for i in range(19))})"]
    + [f"x({x}) & y({y}) -> sum({x + y})" for x in range(10) for y in range(10)]
)

layer = lbm.nn.LogicLayer(RULES, inputs=["x(*)", "y(*)"], queries=["sum(*)"])
network = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.3), nn.Linear(128, 10))
optimiser = torch.optim.Adam(network.parameters(), lr=2e-3)
for _ in range(60):
    for batch in torch.randperm(700).split(32):
        optimiser.zero_grad()
        out = layer(network(images[train[0, batch]]), network(images[train[1, batch]]))
        out.loss(sums[batch]).backward()
        optimiser.step()
network.eval()
out = layer(network(images[test[0]]), network(images[test[1]]))
said = out.marginals["sum(*)"].argmax(dim=1)

right = (said == labels[test].sum(dim=0)).double().mean()
digits = (network(images[test.flatten()]).argmax(dim=1) == labels[test.flatten()]).double().mean()
print(f"sums of unseen pairs that are right: {right:.1%}; digits read correctly: {digits:.1%}")
print(f"\nwhy the first two images add up to {said[0]}:\n{out.why(0, said[0], most=3)}")
